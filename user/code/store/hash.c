/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/store/hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_BYTES ((CODE_HASH_SIZE - 1) / 2)

struct code_hash {
	EVP_MD_CTX *context;
	bool failed;
};

void code_hash_free(struct code_hash *hash)
{
	if (!hash)
		return;
	EVP_MD_CTX_free(hash->context);
	free(hash);
}

int code_hash_begin(struct code_hash **result)
{
	struct code_hash *hash = calloc(1, sizeof(*hash));

	if (!hash)
		return -ENOMEM;
	hash->context = EVP_MD_CTX_new();
	if (!hash->context) {
		code_hash_free(hash);
		return -ENOMEM;
	}
	hash->failed = !EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL);
	*result = hash;
	return 0;
}

void code_hash_add(struct code_hash *hash, const void *bytes, size_t length)
{
	if (!hash->failed)
		hash->failed = !EVP_DigestUpdate(hash->context, bytes, length);
}

int code_hash_end(struct code_hash *hash, char text[CODE_HASH_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int length = 0;
	bool good = !hash->failed && EVP_DigestFinal_ex(hash->context, digest, &length) && length == DIGEST_BYTES;

	code_hash_free(hash);
	text[0] = '\0';
	if (!good)
		return -EIO;
	for (unsigned int i = 0; i < DIGEST_BYTES; i++) {
		text[2 * i] = digits[digest[i] >> 4];
		text[2 * i + 1] = digits[digest[i] & 15];
	}
	text[CODE_HASH_SIZE - 1] = '\0';
	return 0;
}

int code_hash_bytes(const void *bytes, size_t length, char text[CODE_HASH_SIZE])
{
	struct code_hash *hash;
	int error = code_hash_begin(&hash);

	text[0] = '\0';
	if (error)
		return error;
	code_hash_add(hash, bytes, length);
	return code_hash_end(hash, text);
}

bool code_hash_valid(const char *text)
{
	return strlen(text) == CODE_HASH_SIZE - 1 && strspn(text, "0123456789abcdef") == CODE_HASH_SIZE - 1;
}
