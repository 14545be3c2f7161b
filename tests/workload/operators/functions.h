/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H
#include <string>
#include <vector>

struct Done {
	std::vector<const char *> names;
	int caught = 0;
};

namespace c10
{
struct Scalar {
};
} // namespace c10
namespace at
{
struct Tensor {
	~Tensor()
	{
	} /* returned in memory */
	long field = 0;
};
namespace _ops
{
extern thread_local Done *done;

struct add_Tensor {
	static Tensor call(const Tensor &a, const Tensor &b, const c10::Scalar &factor);
};
struct mm {
	static Tensor call(const Tensor &a, const Tensor &b);
};
struct linear {
	static Tensor call(const Tensor &a, const Tensor &b);
};
struct cholesky {
	static Tensor call(const Tensor &a);
};
struct linalg {
	static Tensor call(const Tensor &a);
};
struct zero_ {
	static void call(Tensor &a);
};
} // namespace _ops
} // namespace at

#endif
