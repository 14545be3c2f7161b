/* SPDX-License-Identifier: BSD-2-Clause */
/* Files and folders of code objects, read without a process. */
#include "base_file_folder.h"

#include <sys/mman.h>
#include <xputrace/codeobj.h>

#include "code/store/index.h"
#include "code/store/store.h"

/* Of "abc", by sha256sum. */
#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void at_tmp(void)
{
	place_make("/tmp");
	said = (struct said){ 0 };
}

TestSuite(session_offline_codeobj_read, .init = at_tmp, .fini = place_remove);

static struct xpt_codeobj_list *list_of(const char *path)
{
	struct xpt_codeobj_list *list = NULL;

	cr_assert_eq(xpt_codeobj_read(path, said_write, NULL, &list), 0, "%s: %s", path, said.text);
	cr_assert_eq(list->size, sizeof(*list));
	return list;
}

static void expect_error(const char *path, int error)
{
	struct xpt_codeobj_list *list = NULL;

	said = (struct said){ 0 };
	cr_assert_eq(xpt_codeobj_read(path, said_write, NULL, &list), error, "%s: %s", path, said.text);
	cr_assert_eq(said.count, 1, "%s", said.text);
	cr_assert_null(list);
}

Test(session_offline_codeobj_read, a_file)
{
	struct xpt_codeobj_list *list;
	const struct xpt_codeobj *object;
	char uri[PATH_MAX + 64];

	make_file(in("a b"), "abc");
	list = list_of(in("a b"));
	cr_assert_eq(list->count, 1);
	object = list->objects[0];
	snprintf(uri, sizeof(uri), "file://%s/a%%20b", place);
	cr_assert_str_eq(object->uri, uri);
	cr_assert_str_eq(object->kind, "unknown");
	cr_assert_str_eq(object->sha256, SHA_ABC);
	cr_assert(object->data_size == 3 && !object->data && !object->file && !object->runtime && !object->pid);
	cr_assert_eq(object->device, -1);
	xpt_codeobj_list_free(list);
	/* The name reports what the bytes do not contain. */
	make_file(in("a.hlo"), "abc");
	list = list_of(in("a.hlo"));
	cr_assert_str_eq(list->objects[0]->kind, "hlo");
	xpt_codeobj_list_free(list);
	make_file(in("a.gguf"), "abc");
	list = list_of(in("a.gguf"));
	cr_assert_not_null(list->objects[0]->error);
	xpt_codeobj_list_free(list);
	make_file(in("empty"), "");
	list = list_of(in("empty"));
	cr_assert_eq(list->objects[0]->data_size, 0);
	xpt_codeobj_list_free(list);
	xpt_codeobj_list_free(NULL);
}

/* Longer than the blocks that it is read in. */
Test(session_offline_codeobj_read, a_long_file)
{
	size_t size = (3 << 20) + 5;
	char *bytes = calloc(1, size), sha256[CODE_HASH_SIZE];
	int file = open(in("long"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct xpt_codeobj_list *list;

	bytes[size - 1] = 'x';
	cr_assert_eq(write(file, bytes, size), (ssize_t)size);
	cr_assert_eq(code_hash_bytes(bytes, size, sha256), 0);
	list = list_of(in("long"));
	cr_assert_str_eq(list->objects[0]->sha256, sha256);
	cr_assert_eq(list->objects[0]->data_size, size);
	xpt_codeobj_list_free(list);
	close(file);
	free(bytes);
}

Test(session_offline_codeobj_read, what_cannot_be_read)
{
	expect_error(in("missing"), -ENOENT);
	cr_assert_eq(mkfifo(in("fifo"), 0600), 0);
	expect_error(in("fifo"), -EINVAL);
	expect_error("/dev/null", -EINVAL);
	expect_error(place, -ENOENT);
	make_file(in("index"), "{\"schema\":1,\"objects\":[],\"loads\":[]}");
	make_link("index", in("index.json"), geteuid());
	expect_error(place, -ELOOP);
	cr_assert_eq(unlink(in("index.json")), 0);
	cr_assert_eq(mkfifo(in("index.json"), 0600), 0);
	expect_error(place, -EINVAL);
	cr_assert_eq(unlink(in("index.json")), 0);
	make_file(in("index.json"), "{}");
	expect_error(place, -EBADMSG);
}

/* As a capture writes it, with two loads. */
static void make_folder(void)
{
	const struct xpt_codeobj object = { .size = sizeof(object),
					    .uri = "file:///a",
					    .kind = "ptx",
					    .device = -1,
					    .data_size = 3,
					    .sha256 = SHA_ABC,
					    .file = SHA_ABC ".ptx" };
	const struct xpt_codeobj *const objects[] = { &object, &object };
	const struct xpt_codeobj_list list = { .size = sizeof(list), .objects = objects, .count = 2, .lost = 5 };
	char name[CODE_STORE_NAME_SIZE];
	struct code_store *store;
	struct text text = { 0 };

	cr_assert_eq(code_store_open(&said_log, place, NOBODY, NOBODY, &store), 0);
	cr_assert_eq(code_store_put(store, CODE_PTX, SHA_ABC, "abc", 3, name), 0);
	code_index_write(&text, &list, "memory");
	cr_assert_eq(code_store_index(store, &text), 0);
	cr_assert_eq(status_of(in("index.json")).st_mode, S_IFREG | 0600u);
	text_free(&text);
	code_store_close(store);
}

/* The file of the object is not what the index says. */
static void expect_blamed(const char *words)
{
	struct xpt_codeobj_list *list = list_of(place);

	cr_assert_eq(list->count, 2);
	for (size_t i = 0; i < 2; i++) {
		cr_assert_null(list->objects[i]->file);
		cr_assert(strstr(list->objects[i]->error, words), "%s", list->objects[i]->error);
		cr_assert_str_eq(list->objects[i]->sha256, SHA_ABC);
	}
	xpt_codeobj_list_free(list);
}

Test(session_offline_codeobj_read, a_folder)
{
	const char *file = in(SHA_ABC ".ptx");
	struct xpt_codeobj_list *list;

	make_folder();
	list = list_of(place);
	cr_assert(list->count == 2 && list->lost == 5);
	cr_assert_str_eq(list->objects[1]->file, SHA_ABC ".ptx");
	cr_assert_null(list->objects[1]->error);
	xpt_codeobj_list_free(list);
	make_file(in("other"), "abc");
	cr_assert_eq(truncate(file, 2), 0);
	expect_blamed("size");
	cr_assert_eq(unlink(file), 0);
	expect_blamed("No such file");
	make_link("other", file, geteuid());
	expect_blamed("regular");
	cr_assert_eq(unlink(file), 0);
	make_directory(file, 0700);
	expect_blamed("regular");
	cr_assert_eq(said.count, 0, "%s", said.text);
}

Test(session_offline_codeobj_read, written_as_json)
{
	char text[4096] = { 0 };
	int file = memfd_create("json", MFD_CLOEXEC), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct xpt_codeobj_list *list;
	struct code_list *back;

	make_folder();
	list = list_of(place);
	cr_assert_eq(xpt_codeobj_list_write(list, file), 0);
	cr_assert_gt(pread(file, text, sizeof(text) - 1, 0), 0);
	cr_assert_eq(code_index_read(NULL, "x", text, strlen(text), NULL, NULL, &back), 0);
	cr_assert(back->list.count == 2 && back->list.lost == 5);
	cr_assert_eq(xpt_codeobj_list_write(list, full), -ENOSPC);
	code_list_free(back);
	xpt_codeobj_list_free(list);
	close(file);
	close(full);
}
