/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators that are functions without an object, called as libtorch's are: a stand-in with the same symbols. */
#include <stdexcept>
#include "functions.h"

namespace at::_ops {
thread_local Done *done;

static Tensor end(const char *name)
{
	done->names.push_back(name);
	return {};
}

Tensor add_Tensor::call(const Tensor &, const Tensor &, const c10::Scalar &) { return end("add_Tensor"); }
Tensor mm::call(const Tensor &a, const Tensor &b)
{
	add_Tensor::call(a, b, {});
	add_Tensor::call(b, a, {});
	return end("mm");
}
Tensor linear::call(const Tensor &a, const Tensor &b)
{
	mm::call(a, b);
	return end("linear");
}
Tensor cholesky::call(const Tensor &a)
{
	add_Tensor::call(a, a, {});
	throw std::runtime_error("not positive definite");
}
Tensor linalg::call(const Tensor &a)
{
	cholesky::call(a);
	return end("linalg");
}
void zero_::call(Tensor &) { end("zero_"); }
}
