/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "code/store/hash.h"

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

Test(code_store_hash, known_answers)
{
	char text[CODE_HASH_SIZE];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		cr_assert_eq(code_hash_bytes(known[i].text, strlen(known[i].text), text), 0);
		cr_assert_str_eq(text, known[i].sha256);
	}
}

/* In pieces of every length from 0 to 200. */
Test(code_store_hash, a_million_in_pieces)
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

Test(code_store_hash, what_looks_like_one)
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
