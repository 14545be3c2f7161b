/* SPDX-License-Identifier: BSD-2-Clause */
/* A toy runtime in C++ whose programs are made of operators. */
#ifndef TOY_H
#define TOY_H
#include <cstdint>
#include <string>
#include <typeinfo>
#include <vector>
struct Program;
struct Run {
	void *functions[2], *stream;
	int caught = 0;
	std::vector<std::pair<const char *, const void *>> done;
	std::vector<std::pair<uint64_t, const void *>> launched; /* submission to the accelerator, and by which object */
	int log(const char *name, const void *object)
	{
		done.emplace_back(name, object);
		return 0;
	}
};
extern "C" __attribute__((visibility("default"))) Program *toy_load(const char *text);
extern "C" __attribute__((visibility("default"))) int toy_run(Program *program, Run *run);

#endif
