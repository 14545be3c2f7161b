/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operator_classes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void expect_type(const char *name, const char *type)
{
	char text[64];

	operator_class_type(name, text, sizeof(text));
	cr_expect_str_eq(text, type, "%s: %s", name, text);
}

Test(model_operator_operator_classes, type)
{
	expect_type("onnxruntime::contrib::FusedGemm<float>", "FusedGemm");
	expect_type("onnxruntime::Gemm<float>", "Gemm");
	expect_type("onnxruntime::Pool<float, onnxruntime::MaxPool<8> >", "Pool");
	expect_type("(anonymous namespace)::Hidden", "Hidden");
	expect_type("a<b::c>::d<(e::f)0>", "d");
	expect_type("Relu", "Relu");
	expect_type("", "");
	expect_type("a::", "a::");
	expect_type("<x>", "<x>");
	expect_type(">>>a", ">>>a");
	expect_type("a:b", "a:b");
	expect_type("::a", "a");
	expect_type("a::<lambda(int)>", "a::<lambda(int)>");
}

Test(model_operator_operator_classes, type_is_cut)
{
	char name[300], text[8];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	operator_class_type(name, text, sizeof(text));
	cr_expect_str_eq(text, "xxxxxxx");
}

Test(model_operator_operator_classes, of_each_process)
{
	struct process first = { .view.sort_index = 1 }, second = { .view.sort_index = 2 };
	struct operator_classes classes = { 0 };

	cr_expect_null(operator_classes_find(&classes, &first, 0x1000));
	cr_assert_eq(operator_classes_add(&classes, &first, 0x1000, "a::Gemm", 7), 0);
	cr_assert_eq(operator_classes_add(&classes, &second, 0x1000, "a::Relu+", 7), 0);
	cr_assert_eq(operator_classes_add(&classes, &first, 0x2000, "a::Relu", 7), 0);
	cr_assert_eq(operator_classes_add(&classes, &first, 0x2000, "a::Tanh", 7), 0);
	cr_expect_str_eq(operator_classes_find(&classes, &first, 0x1000), "a::Gemm");
	cr_expect_str_eq(operator_classes_find(&classes, &second, 0x1000), "a::Relu");
	cr_expect_str_eq(operator_classes_find(&classes, &first, 0x2000), "a::Tanh");
	operator_classes_drop(&classes, &first);
	operator_classes_drop(&classes, &first);
	cr_expect_null(operator_classes_find(&classes, &first, 0x1000));
	cr_expect_str_eq(operator_classes_find(&classes, &second, 0x1000), "a::Relu");
	for (__u64 i = 0; i < 5000; i++)
		cr_assert_eq(operator_classes_add(&classes, &first, i, "x", 1), 0);
	operator_classes_free(&classes);
}
