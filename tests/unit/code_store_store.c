/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base_file_folder.h"
#include "code/store/store.h"

/* Of "abc", by sha256sum. */
#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void at_tmp(void)
{
	place_make("/tmp");
}

TestSuite(code_store_store, .init = at_tmp, .fini = place_remove);

static struct code_store *store_at(const char *path, uid_t uid)
{
	struct code_store *store = NULL;

	said = (struct said){ 0 };
	cr_assert_eq(code_store_open(&said_log, path, uid, uid, &store), 0, "%s", said.text);
	return store;
}

static int put_abc(struct code_store *store, const char **name)
{
	static char found[CODE_STORE_NAME_SIZE];

	*name = found;
	return code_store_put(store, CODE_HSACO, SHA_ABC, "abc", 3, found);
}

Test(code_store_store, written_once)
{
	struct code_store *store = store_at(in("made"), NOBODY);
	struct stat first;
	const char *name;

	cr_assert_eq(put_abc(store, &name), 0);
	cr_assert_str_eq(name, SHA_ABC ".hsaco");
	cr_assert_str_eq(text_of(in("made/" SHA_ABC ".hsaco")), "abc");
	first = status_of(in("made/" SHA_ABC ".hsaco"));
	cr_assert_eq(first.st_mode, S_IFREG | 0600u);
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(put_abc(store, &name), 0);
	code_store_close(store);
	/* And another time. */
	store = store_at(in("made"), NOBODY);
	cr_assert_eq(put_abc(store, &name), 0);
	cr_assert_eq(status_of(in("made/" SHA_ABC ".hsaco")).st_ino, first.st_ino);
	cr_assert_eq(entries(in("made")), 1);
	cr_assert_eq(said.count, 0);
	code_store_close(store);
	code_store_close(NULL);
}

Test(code_store_store, belongs_to_the_owner)
{
	struct code_store *store;
	const char *name;

	want_root();
	store = store_at(in("made"), 1234);
	cr_assert_eq(put_abc(store, &name), 0);
	cr_assert_eq(status_of(in("made")).st_uid, 1234);
	cr_assert_eq(status_of(in("made/" SHA_ABC ".hsaco")).st_uid, 1234);
	code_store_close(store);
}

/* What has the name is never followed, written over, or taken for it. */
static void in_the_way(struct code_store *store, const char *name)
{
	const char *found;

	said = (struct said){ 0 };
	cr_assert_eq(put_abc(store, &found), -EEXIST);
	cr_assert_eq(said.count, 1);
	cr_assert(strstr(said.text, "is something else"), "%s", said.text);
	cr_assert_eq(remove(name), 0);
}

Test(code_store_store, something_else_is_there)
{
	struct code_store *store = store_at(place, NOBODY);
	const char *name = in(SHA_ABC ".hsaco"), *found;

	make_file(name, "abcd");
	in_the_way(store, name);
	make_file(in("victim"), "abc");
	make_link("victim", name, geteuid());
	in_the_way(store, name);
	make_link("nowhere", name, geteuid());
	in_the_way(store, name);
	cr_assert_not(there(in("nowhere")));
	make_directory(name, 0700);
	in_the_way(store, name);
	cr_assert_eq(mkfifo(name, 0600), 0);
	in_the_way(store, name);
	cr_assert_eq(put_abc(store, &found), 0);
	cr_assert_eq(entries(place), 2);
	code_store_close(store);
}

/* In a folder where everybody may make files, one of another user with that name and size may hold anything. */
Test(code_store_store, of_a_stranger)
{
	struct code_store *store;
	const char *name = in(SHA_ABC ".hsaco");

	want_root();
	cr_assert_eq(chmod(place, 01777), 0);
	store = store_at(place, NOBODY);
	make_file(name, "xyz");
	cr_assert_eq(chown(name, STRANGER, STRANGER), 0);
	in_the_way(store, name);
	code_store_close(store);
}

Test(code_store_store, hashes_are_checked)
{
	struct code_store *store = store_at(place, NOBODY);
	char name[CODE_STORE_NAME_SIZE];

	cr_assert_eq(code_store_put(store, CODE_ELF, "", "abc", 3, name), -EINVAL);
	cr_assert_eq(code_store_put(store, CODE_ELF, "../../../../etc/passwd", "abc", 3, name), -EINVAL);
	cr_assert_eq(entries(place), 0);
	code_store_close(store);
}

Test(code_store_store, copied_from_a_file)
{
	struct code_store *store = store_at(in("made"), NOBODY);
	char name[CODE_STORE_NAME_SIZE];
	int from;

	make_file(in("from"), "xxabcxx");
	from = open(in("from"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(code_store_copy(store, CODE_PTX, SHA_ABC, from, 1, 3, name), -ESTALE);
	cr_assert_eq(code_store_copy(store, CODE_PTX, SHA_ABC, from, 5, 3, name), -ESTALE, "behind the end");
	cr_assert_eq(entries(in("made")), 0);
	cr_assert_eq(code_store_copy(store, CODE_PTX, SHA_ABC, from, 2, 3, name), 0);
	cr_assert_str_eq(name, SHA_ABC ".ptx");
	cr_assert_str_eq(text_of(in("made/" SHA_ABC ".ptx")), "abc");
	cr_assert_eq(lseek(from, 0, SEEK_CUR), 0);
	/* There already: not read again. */
	cr_assert_eq(ftruncate(from, 0), 0);
	cr_assert_eq(code_store_copy(store, CODE_PTX, SHA_ABC, from, 2, 3, name), 0);
	close(from);
	code_store_close(store);
}

/* Larger than the blocks that it is copied in: 3 MiB and a byte of 'a'. */
Test(code_store_store, copied_in_blocks)
{
	struct code_store *store = store_at(in("made"), NOBODY);
	char name[CODE_STORE_NAME_SIZE], sha256[CODE_HASH_SIZE], path[CODE_STORE_NAME_SIZE + 8];
	size_t size = (3 << 20) + 1;
	char *bytes = malloc(size);
	int from = open(in("from"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	memset(bytes, 'a', size);
	cr_assert_eq(write(from, bytes, size), (ssize_t)size);
	cr_assert_eq(code_hash_bytes(bytes, size, sha256), 0);
	cr_assert_eq(code_store_copy(store, CODE_UNKNOWN, sha256, from, 0, size, name), 0);
	snprintf(path, sizeof(path), "made/%s", name);
	cr_assert_eq((size_t)status_of(in(path)).st_size, size);
	close(from);
	free(bytes);
	code_store_close(store);
}

static void no_room(const char *path, int error)
{
	static char bytes[2 << 20];
	struct code_store *store = store_at(path, NOBODY);
	char name[CODE_STORE_NAME_SIZE], sha256[CODE_HASH_SIZE];
	struct text old = { .data = "old", .length = 3 }, large = { .data = bytes, .length = sizeof(bytes) };
	char index[PATH_MAX];
	int from = memfd_create("from", MFD_CLOEXEC);

	cr_assert_eq(write(from, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	cr_assert_eq(code_hash_bytes(bytes, sizeof(bytes), sha256), 0);
	cr_assert_eq(code_store_index(store, &old), 0);
	cr_assert_eq(code_store_put(store, CODE_ELF, sha256, bytes, sizeof(bytes), name), error);
	cr_assert_gt(said.count, 0);
	cr_assert_eq(code_store_copy(store, CODE_ELF, sha256, from, 0, sizeof(bytes), name), error);
	cr_assert_eq(code_store_index(store, &large), error);
	cr_assert_eq(entries(path), 1);
	snprintf(index, sizeof(index), "%s/index.json", path);
	cr_assert_str_eq(text_of(index), "old");
	close(from);
	code_store_close(store);
}

Test(code_store_store, full_file_system)
{
	want_root();
	make_directory(in("mounted"), 0755);
	mount_own(in("mounted"), "size=1m,mode=755");
	no_room(in("mounted"), -ENOSPC);
	umount(in("mounted"));
}

Test(code_store_store, names)
{
	char name[CODE_STORE_NAME_SIZE], longest[CODE_STORE_NAME_SIZE + 8];

	for (int kind = 0; kind < CODE_KINDS; kind++) {
		code_store_name((enum code_kind)kind, SHA_ABC, name);
		cr_assert(code_store_is_name(name, SHA_ABC), "%s", name);
		cr_assert_lt(strlen(name), sizeof(name) - 1, "%s may be cut", name);
		cr_assert_eq(code_store_kind(name), (enum code_kind)kind);
		snprintf(longest, sizeof(longest), "%sx", name);
		cr_assert_not(code_store_is_name(longest, SHA_ABC));
		snprintf(longest, sizeof(longest), "./%s", name);
		cr_assert_not(code_store_is_name(longest, SHA_ABC));
	}
	code_store_name((enum code_kind)999, SHA_ABC, name);
	cr_assert_str_eq(name, SHA_ABC ".bin");
	cr_assert_eq(code_store_kind("/a.elf/b"), CODE_UNKNOWN);
	cr_assert_eq(code_store_kind("elf"), CODE_UNKNOWN);
	cr_assert_eq(code_store_kind("/a/b.c.elf"), CODE_ELF);
	cr_assert_not(code_store_is_name("../" SHA_ABC ".bin", SHA_ABC));
	cr_assert_not(code_store_is_name("", SHA_ABC));
}

#define MILLION 1000000

/* The answers are those of FIPS 180-4's examples, and of sha256sum. */
static const struct {
	const char *text;
	const char *sha256;
} known[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

Test(code_store_store, known_answers)
{
	char text[CODE_HASH_SIZE];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		cr_assert_eq(code_hash_bytes(known[i].text, strlen(known[i].text), text), 0);
		cr_assert_str_eq(text, known[i].sha256);
	}
}

/* In pieces of every length from 0 to 200. */
Test(code_store_store, a_million_in_pieces)
{
	char *bytes = malloc(MILLION), text[CODE_HASH_SIZE];
	struct code_hash *hash;
	size_t done = 0, length, piece;

	memset(bytes, 'a', MILLION);
	cr_assert_eq(code_hash_begin(&hash), 0);
	for (piece = 0; done < MILLION; piece++, done += length) {
		length = piece % 201 < MILLION - done ? piece % 201 : MILLION - done;
		code_hash_add(hash, bytes + done, length);
	}
	cr_assert_eq(code_hash_end(hash, text), 0);
	cr_assert_str_eq(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(bytes);
	code_hash_free(NULL);
}

Test(code_store_store, what_looks_like_one)
{
	char text[CODE_HASH_SIZE + 1] = { 0 };

	cr_assert(code_hash_valid(known[0].sha256));
	cr_assert_not(code_hash_valid(""));
	cr_assert_not(code_hash_valid(known[0].sha256 + 1));
	memset(text, 'a', CODE_HASH_SIZE);
	cr_assert_not(code_hash_valid(text), "too long");
	text[CODE_HASH_SIZE - 1] = '\0';
	cr_assert(code_hash_valid(text));
	text[7] = 'A';
	cr_assert_not(code_hash_valid(text));
	text[7] = '/';
	cr_assert_not(code_hash_valid(text));
}
