/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf/type_name.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX 4096
#define SECONDS_MAX 2.0 /* some milliseconds without sanitizers */

struct type_name_case {
	const char *mangled, *text;
};

/* As c++filt of binutils 2.40 prints them. */
static const struct type_name_case understood[] = {
	{ "i", "int" },
	{ "z", "..." },
	{ "Dn", "decltype(nullptr)" },
	{ "DF16_", "_Float16" },
	{ "DF16b", "std::bfloat16_t" },
	{ "u6__bf16", "__bf16" },
	{ "Dv4_f", "float __vector(4)" },
	{ "Cd", "double _Complex" },
	{ "Gd", "double _Imaginary" },
	/* names */
	{ "N11onnxruntime4GemmIfEE", "onnxruntime::Gemm<float>" },
	{ "*N11onnxruntime4GemmIfEE", "onnxruntime::Gemm<float>" },
	{ "*N12_GLOBAL__N_13FooE", "(anonymous namespace)::Foo" },
	{ "N11onnxruntime7contrib9AttentionIfEE", "onnxruntime::contrib::Attention<float>" },
	{ "3Foo", "Foo" },
	{ "L3Foo", "Foo" },
	{ "N12_GLOBAL__N_1L3FooE", "(anonymous namespace)::Foo" },
	{ "NK1A1BE", "A::B const" },
	{ "NVK1A1BE", "A::B const volatile" },
	{ "NKO1AE", "A const &&" },
	{ "N1AB5cxx111BE", "A[abi:cxx11]::B" },
	{ "N1AUt_E", "A::{unnamed type#1}" },
	{ "N1AUt0_E", "A::{unnamed type#2}" },
	{ "N1A3$_0E", "A::$_0" },
	{ "N1A1mMUlvE_E", "A::m::{lambda()#1}" },
	/* the standard library */
	{ "St6vectorIiSaIiEE", "std::vector<int, std::allocator<int> >" },
	{ "St9type_info", "std::type_info" },
	{ "NSt3_V214error_categoryE", "std::_V2::error_category" },
	{ "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
	  "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >" },
	{ "Ss", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >" },
	{ "1AISiSoSdSaSbE", "A<std::basic_istream<char, std::char_traits<char> >, std::basic_ostream<char, "
			    "std::char_traits<char> >, std::basic_iostream<char, std::char_traits<char> >, "
			    "std::allocator, std::basic_string>" },
	/* template arguments */
	{ "1AIJEE", "A<>" },
	{ "1AIiJEE", "A<int>" },
	{ "1AIJidEcE", "A<int, double, char>" },
	{ "1AILi3ELin4ELj5ELl6ELm7ELx8ELyn9EE", "A<3, -4, 5u, 6l, 7ul, 8ll, -9ull>" },
	{ "1AILb0ELb1ELb2EE", "A<false, true, (bool)2>" },
	{ "1AILcn3ELs3ELw65EE", "A<(char)-3, (short)3, (wchar_t)65>" },
	{ "1AILN1B1CE2ELN1D1EEn2EE", "A<(B::C)2, (D::E)-2>" },
	{ "1AILf3f800000ELDnEE", "A<(float)[3f800000], decltype(nullptr)>" },
	{ "N1AIiE1BIcE1CE", "A<int>::B<char>::C" },
	/* substitutions */
	{ "1AI1BIS_S_ES1_IS_EE", "A<B<A, A>, B<A, A><A> >" },
	{ "1BI1AIiES0_S1_E", "B<A<int>, A, A<int> >" },
	{ "1AIKiS0_PS0_S1_E", "A<int const, int const, int const*, int const*>" },
	{ "1AIKFvvES0_E", "A<void () const, void () const>" },
	{ "1AIu3fooS0_E", "A<foo, foo>" },
	{ "1AIDv4_fS0_E", "A<float __vector(4), float __vector(4)>" },
	{ "NSt1AIiE1BIS0_EE", "std::A<int>::B<std::A<int> >" },
	/* g++ 12 and clang 14 mean A::{unnamed type#1} by S1_ */
	{ "1TIJN1AUt_ES0_S1_NS0_Ut0_EEE", "T<A::{unnamed type#1}, A, {unnamed type#1}, A::{unnamed type#2}>" },
	{ "1AI1B1C1D1E1F1G1H1I1J1K1L1M1N1O1P1Q1R1S1T1U1V1W1X1Y1Z2AA2BB2CC2DD2EE2FF2GG2HH2II2JJ2KK2LLS8_SA_SZ_S10_E",
	  "A<B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z, AA, BB, CC, DD, EE, FF, GG, HH, "
	  "II, JJ, KK, LL, J, L, KK, LL>" },
	/* qualifiers, pointers, references */
	{ "PKc", "char const*" },
	{ "rVKPi", "int* const volatile restrict" },
	{ "RKPKc", "char const* const&" },
	{ "OPi", "int*&&" },
	{ "RO1A", "A&" },
	{ "U3fooi", "int foo" },
	{ "PU7__localKi", "int const __local*" },
	/* declarators */
	{ "PFivE", "int (*)()" },
	{ "FvRKiOdzE", "void (int const&, double&&, ...)" },
	{ "FvvOE", "void () &&" },
	{ "PFPFivEiE", "int (*(*)(int))()" },
	{ "PKDoFvvE", "void (*)() noexcept const" },
	{ "A3_A4_i", "int [3][4]" },
	{ "A_i", "int []" },
	{ "KA3_i", "int const [3]" },
	{ "PKPA3_i", "int (* const*) [3]" },
	{ "PA3_PFivE", "int (* (*) [3])()" },
	{ "RA3_KPFivE", "int (* const (&) [3])()" },
	{ "A3_PA4_i", "int (* [3]) [4]" },
	{ "FRA3_ivE", "int (&()) [3]" },
	{ "PFPA3_ivE", "int (*(*)()) [3]" },
	{ "M1Ai", "int A::*" },
	{ "PM1Ai", "int A::**" },
	{ "M1AA3_i", "int (A::*) [3]" },
	{ "M1AKDoFvvRE", "void (A::*)() noexcept const &" },
	{ "M1AFPFivEiE", "int (* (A::*)(int))()" },
	{ "RKM1AFivE", "int (A::* const&)()" },
	/* within functions */
	{ "ZN3foo3barEvEUlvE_", "foo::bar()::{lambda()#1}" },
	{ "ZN3foo3barEvEUliPKcE1_", "foo::bar()::{lambda(int, char const*)#3}" },
	{ "Z4mainEUlvE_", "main::{lambda()#1}" },
	{ "ZNK1A1fEvE1B_0", "A::f() const::B" },
	{ "ZNKR1A1fEvE1B__12_", "A::f() const &::B" },
	{ "Z1fvEN1A1BE", "f()::A::B" },
	{ "Z1fvEd0_NUlvE_E", "f()::{default arg#2}::{lambda()#1}" },
	{ "ZNSt6vectorIiEC1EvE1B", "std::vector<int>::vector()::B" },
	{ "ZNSsD1EvE1B", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::~basic_string()::B" },
	{ "ZNK1AcvPbEvE1B", "A::operator bool*() const::B" },
	{ "ZN1AltIiEEvT_E1B", "A::operator< <int>(int)::B" },
	{ "ZN1Ali2_xEyE1B", "A::operator\"\" _x(unsigned long long)::B" },
	{ "ZN1AnwEmE1B", "A::operator new(unsigned long)::B" },
	{ "Z1fIiEPT_S0_E1B", "f<int>(int)::B" },
	{ "ZN1AC1IiEET_E1B", "A::A<int>(int)::B" },
	{ "Z1fIRKiEvOT_E1B", "f<int const&>(int const&)::B" },
	{ "Z1fIKiEvPKT_E1B", "f<int const>(int const*)::B" },
	{ "Z1fIFvvEEvPT_RS1_E1B", "f<void ()>(void (*)(), void (&)())::B" },
	{ "Z1fI1TiEvT_IJT0_EET0_E1B", "f<T, int>(T<int>, int)::B" },
	{ "Z1fIJidEEvDpRKT_DpS2_E1B", "f<int, double>(int const&, double const&, int const&, double const&)::B" },
	{ "Z1fIJEEviDpRKT_E1B", "f<>(int)::B" },
	{ "Z1fIJicEEvSt5tupleIJDpT_EEE1B", "f<int, char>(std::tuple<int, char>)::B" },
	{ "Z1fvEUlDpOT_E_", "f()::{lambda((auto:1&&)...)#1}" },
	{ "ZZ4mainENKUlRKT_E_clIiEEDaS1_E1B", "main::{lambda(auto:1 const&)#1}::operator()<int>(int const&) const::B" },
	/* the auto:1 in the middle is a parameter of mk, not of a lambda */
	{ "ZZ2mkIiEDaT_ENKUlS0_RZS_IiEDaS0_EUlS0_E_E1_clIiEEDaS0_S2_E1I",
	  "mk<int>(int)::{lambda(auto:1, mk<int>(auto:1)::{lambda(auto:1)#1}&)#3}::operator()<int>(int, "
	  "mk<int>(int)::{lambda(auto:1)#1}&) const::I" },
};

/* No compiler writes most of these: the text is of no use, but it ends, and has nothing that the name has not. */
static const struct type_name_case tolerated[] = {
	{ "1AIXadL_Z3foovEEE", "A<&(foo())>" },
	{ "DTcl1fEE", "decltype (f())" },
	{ "FFvvEvE", "void ()()" },
	{ "FA3_ivE", "int (()) [3]" },
	{ "N1AMM1BE", "A::B" },
	{ "Z1fIJEEvDpT_DpS1_E1B", "f<>(, ()...)::B" },
	{ "A3_FvvE", "void  [3]()" },
	{ "N1AIiEIiEE", "A<int><int>" },
	{ "Z1fvEs", "f()::string literal" },
	{ "Z1fvE1B_", "f()::B" },
	{ "Z1fvE1B__1", "f()::B" },
	{ "Z1fIJiEEvT_E1B", "f<int>(int)::B" },
	{ "Doi", "int noexcept" },
	{ "ZN1AcvT_IiEEvE1B", "A::operator int<int>()::B" },
};

static const char *const refused[] = {
	"",
	"*",
	"**i",
	"E",
	"N",
	"NE",
	"N1A",
	"NSsE",
	"NStE",
	"N1AEE",
	"ii",
	"0",
	"1",
	"2A",
	"1Ai",
	"3a\tb",
	"3a(b",
	"01",
	"99999999999999999999A",
	"S",
	"S_",
	"S0_",
	"SZZZZZZZZZZZZZZZZ_",
	"1AIS0_E",
	"1AIiES_",
	"1AI",
	"1AIi",
	"1AIJiE",
	"1AILiE",
	"1AILi3",
	"1AIL3E",
	"T_",
	"FvT_E",
	"FvDpT_E",
	"PFvv",
	"F",
	"PFROE",
	"1AILfEE",
	"N1AME",
	"FE",
	"FvE",
	"A3",
	"A3i",
	"A3_",
	"KS_",
	"M1A",
	"Ul",
	"UlvE_",
	"Ut_",
	"N1AUlvEE",
	"NI1AE",
	"NC1E",
	"N1AC6E",
	"Z1f",
	"Z1fv",
	"Z1fvE",
	"Z1fIiEvT0_E1B",
	"Z1fIJiEEvDpFT_T0_EE1B",
	"Dv_f",
	"Dv4f",
	"DFi",
	"Di_",
	"D",
	"U",
	"u",
	"u3f",
	"St",
	"Sz",
	"_ZTI1A",
	"1A.",
	"Do",
};

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void expect_refused(const char *mangled)
{
	char text[TEXT_MAX] = "before";

	cr_expect_eq(type_name_read(mangled, text, sizeof(text)), -ENOTSUP, "%.80s: %.80s", mangled, text);
	cr_expect_str_empty(text);
}

/* Memory of exactly that size: a sanitizer sees what is read behind the end. */
static void read_prefix(const char *mangled, size_t length)
{
	char *prefix = strndup(mangled, length), text[TEXT_MAX];
	int error;

	cr_assert_not_null(prefix);
	error = type_name_read(prefix, text, sizeof(text));
	cr_expect(error ? error == -ENOTSUP && !text[0] : text[0], "%s", prefix);
	free(prefix);
}

Test(target_elf_type_name, every_form)
{
	for (size_t i = 0; i < sizeof(understood) / sizeof(understood[0]); i++) {
		const struct type_name_case *name = &understood[i];
		char text[TEXT_MAX];

		cr_expect_eq(type_name_read(name->mangled, text, sizeof(text)), 0, "%s", name->mangled);
		cr_expect_str_eq(text, name->text, "%s: %s", name->mangled, text);
	}
}

Test(target_elf_type_name, what_is_tolerated)
{
	for (size_t i = 0; i < sizeof(tolerated) / sizeof(tolerated[0]); i++) {
		char text[TEXT_MAX];

		cr_expect_eq(type_name_read(tolerated[i].mangled, text, sizeof(text)), 0, "%s", tolerated[i].mangled);
		cr_expect_str_eq(text, tolerated[i].text, "%s: %s", tolerated[i].mangled, text);
	}
}

Test(target_elf_type_name, what_is_not_understood)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		expect_refused(refused[i]);
}

Test(target_elf_type_name, every_prefix)
{
	for (size_t i = 0; i < sizeof(understood) / sizeof(understood[0]); i++)
		for (size_t length = 0; length < strlen(understood[i].mangled); length++)
			read_prefix(understood[i].mangled, length);
}

/* Every character of every name replaced by each of those that mean something. */
Test(target_elf_type_name, every_character_changed)
{
	static const char characters[] = "0123456789_ABCDEFGIJKLMNOPRSTUVXYZabcdefhilnoprstuvz\xff\x01";

	for (size_t i = 0; i < sizeof(understood) / sizeof(understood[0]); i++) {
		char name[512];

		snprintf(name, sizeof(name), "%s", understood[i].mangled);
		for (char *at = name; *at; at++) {
			char before = *at;

			for (const char *c = characters; *c; c++) {
				*at = *c;
				read_prefix(name, sizeof(name));
			}
			*at = before;
		}
	}
}

Test(target_elf_type_name, text_fits_or_is_not_written)
{
	char text[9] = "12345678";

	cr_expect_eq(type_name_read("N3foo3barE", text, 9), 0);
	cr_expect_str_eq(text, "foo::bar");
	memcpy(text, "12345678", 9);
	cr_expect_eq(type_name_read("N3foo3barE", text, 8), -ENOTSUP);
	cr_expect_arr_eq(text, "\0002345678", 9);
	cr_expect_eq(type_name_read("i", text, 0), -ENOTSUP);
	cr_expect_eq(text[1], '2');
}

/* head, count times part, tail. */
static char *repeated(const char *head, const char *part, size_t count, const char *tail)
{
	size_t length = strlen(part);
	char *name = malloc(strlen(head) + count * length + strlen(tail) + 1), *at = name;

	cr_assert_not_null(name);
	at = stpcpy(at, head);
	while (count--)
		at = stpcpy(at, part);
	strcpy(at, tail);
	return name;
}

static void expect_refused_soon(char *mangled)
{
	double begin = seconds();

	expect_refused(mangled);
	cr_expect_lt(seconds() - begin, SECONDS_MAX, "%.80s", mangled);
	free(mangled);
}

/* Is read wholly, or not at all, and soon. */
static void expect_end_soon(char *mangled)
{
	char text[TEXT_MAX];
	double begin = seconds();
	int error = type_name_read(mangled, text, sizeof(text));

	cr_expect(error ? error == -ENOTSUP && !text[0] : text[0], "%.80s", mangled);
	cr_expect_lt(seconds() - begin, SECONDS_MAX, "%.80s", mangled);
	free(mangled);
}

Test(target_elf_type_name, depth_is_bounded)
{
	static const char *const parts[] = { "P",     "K",	 "A1_", "F",	"M1A",	"1AI",	 "N1AI", "Z1f",
					     "ZN1AI", "ZNK1AUl", "Dp",	"1AIJ", "1AIL", "N1Acv", "Dv1_", "U1a",
					     "1A",    "N1A",	 "Z",	"N",	"S",	"L",	 "1AIi" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		expect_end_soon(repeated("", parts[i], 200, "i"));
		expect_refused_soon(repeated("", parts[i], 2000, ""));
		expect_refused_soon(repeated("", parts[i], 200000, "i"));
	}
}

/* Each argument is twice as long as the one before: as many bytes as there are atoms in a room. */
Test(target_elf_type_name, doubling_ends_soon)
{
	char name[1024] = "1AI1BIiiE";
	size_t length = strlen(name);

	/* S0_ is B, S1_ is B<int, int>, S2_ is B<S1_, S1_>, ... */
	for (int i = 1; i < 30; i++) {
		char digit = i < 10 ? '0' + i : 'A' + i - 10;

		length += snprintf(name + length, sizeof(name) - length, "S0_IS%c_S%c_E", digit, digit);
	}
	snprintf(name + length, sizeof(name) - length, "E");
	expect_refused_soon(strdup(name));
}

/* Parameter packs within each other are read again for each element of each. */
Test(target_elf_type_name, packs_within_packs_end_soon)
{
	expect_refused_soon(repeated("Z1fIJiiiiiiiiEEv", "DpSt4pairIT_", 12, "EEEEEEEEEEEEE1B"));
	expect_refused_soon(repeated("Z1fIJEJiiiiiiiiEEv", "Dp1AIT0_", 30, "DpT_EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE1B"));
}

/* What depends on template parameters is read again in another context, and what that depends on too. */
Test(target_elf_type_name, readings_in_another_context_end_soon)
{
	char name[1024] = "Z1fvEUlPT_";
	size_t length = strlen(name);

	/* S0_ is A, S1_ ... */
	for (int i = 0; i < 30; i++) {
		char digit[2] = { i == 0 ? '\0' : i < 11 ? '0' + i - 1 : 'A' + i - 11 };

		length += snprintf(name + length, sizeof(name) - length, "FS%s_S%s_E", digit, digit);
	}
	snprintf(name + length, sizeof(name) - length, "E_");
	expect_refused_soon(strdup(name));
}

/* Other readers need twice the time for each repetition: conversion operators, substitutions in an expansion that has no pack. */
Test(target_elf_type_name, what_others_never_end)
{
	static const char digits[] = "23456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "Z1fIJEEvDp1CI1BIiiE", text[TEXT_MAX];
	double begin = seconds();
	size_t length = strlen(name);

	/* S1_ is B, S2_ is B<int, int>, S3_ is B<S2_, S2_>, ... */
	for (const char *digit = digits; *digit; digit++)
		length += snprintf(name + length, sizeof(name) - length, "S1_IS%c_S%c_E", *digit, *digit);
	snprintf(name + length, sizeof(name) - length, "EE1D");
	cr_expect_eq(type_name_read(name, text, sizeof(text)), -ENOTSUP);
	cr_expect_lt(seconds() - begin, SECONDS_MAX);
	expect_refused_soon(repeated("ZN1A", "cvT_I", 100, "iEvE1D"));
	for (size_t count = 1; count < 20; count++)
		expect_end_soon(repeated("ZN1A", "cvT_I", count, "iEvE1D"));
	for (size_t count = 1; count < strlen(digits); count++) {
		length = (size_t)snprintf(name, sizeof(name), "Z1fIJEEvDp1CI1BIiiE");
		for (size_t i = 0; i < count; i++)
			length += snprintf(name + length, sizeof(name) - length, "S1_IS%c_S%c_E", digits[i], digits[i]);
		snprintf(name + length, sizeof(name) - length, "EE1D");
		expect_end_soon(strdup(name));
	}
}

Test(target_elf_type_name, counts_are_bounded)
{
	expect_end_soon(repeated("1AI", "i", 300, "E"));
	expect_end_soon(repeated("1AIJ", "i", 300, "EE"));
	expect_end_soon(repeated("FvPi", "PS_", 300, "E"));
	expect_end_soon(repeated("N", "1A", 300, "E"));
	expect_refused_soon(repeated("1AI", "i", 1024, "E"));
	expect_refused_soon(repeated("1AIJ", "i", 1024, "EE"));
	expect_refused_soon(repeated("FvPi", "PS_", 1024, "E"));
	expect_refused_soon(repeated("N", "1A", 1024, "E"));
	expect_refused_soon(repeated("", "i", 100000, ""));
	expect_refused_soon(repeated("", "9", 100000, "A"));
}

Test(target_elf_type_name, functions)
{
	static const struct type_name_case functions[] = {
		{ "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", "at::_ops::add_Tensor::call" },
		{ "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "at::_ops::mm::call" },
		{ "_ZNK2rt4GemmIfE3runEi", "rt::Gemm<float>::run" },
		{ "_ZN2rt4gemmIfEEvi", "rt::gemm<float>" },
		{ "_Z3runi", "run" },
		{ "_Z3run?!", "run" }, /* what is behind the name does not matter */
		{ "_Z3runi.constprop.0", "run" },
		{ "_ZN2rt4GemmC2Ev", "rt::Gemm::Gemm" },
		{ "toy_run", "toy_run" },
		{ "_z", "_z" },
		{ "i", "i" },
	};
	static const char *const bad[] = { "_Z",   "_ZN",      "_ZN2at4_ops", "_ZN2at4_ops2mm4call", "_Z9run",
					   "_ZS_", "_ZTV3run", "_ZGV3run",    "_ZThn8_N1A3runEv" };
	char text[TEXT_MAX], small[8];

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		cr_expect_eq(type_name_read_function(functions[i].mangled, text, sizeof(text)), 0, "%s",
			     functions[i].mangled);
		cr_expect_str_eq(text, functions[i].text, "%s: %s", functions[i].mangled, text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(type_name_read_function(bad[i], text, sizeof(text)), -ENOTSUP, "%s", bad[i]);
		cr_expect_str_eq(text, "");
	}
	cr_expect_eq(type_name_read_function("toy_run", small, 8), 0);
	cr_expect_eq(type_name_read_function("toy_runs", small, 8), -ENOTSUP);
	cr_expect_str_eq(small, "");
	cr_expect_eq(type_name_read_function("", small, 0), -ENOTSUP);
}
