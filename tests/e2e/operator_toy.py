# SPDX-License-Identifier: BSD-2-Clause
"""A toy runtime in C++ whose programs are made of operators, and a program that runs them and says what it did."""

import json
import os
import shutil
import subprocess

from harness import Skip, library_path, scratch

LIBRARY = r"""
#include <csetjmp>
#include <stdexcept>
#include "toy.h"

extern "C" int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
			      void **, void **);
namespace rt {
thread_local jmp_buf back;

struct Kernel {
	virtual ~Kernel();
	virtual int Compute(Run *run) const = 0;
	const Kernel *inner = nullptr;
	int launches = 0;
	void work(Run *run) const;
};
Kernel::~Kernel() {}
void Kernel::work(Run *run) const
{
	for (int i = 0; i < launches; i++)
		cuLaunchKernel(run->functions[i % 2], 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	if (inner)
		inner->Compute(run);
}

template <class T> struct Gemm : Kernel {
	int Compute(Run *run) const override { work(run); return run->log("rt::Gemm<float>", this); }
};
template struct Gemm<float>;

struct Relu : Kernel { int Compute(Run *run) const override; };
int Relu::Compute(Run *run) const { return run->log(typeid(*this) == typeid(Relu) ? "rt::Relu" : "rt::Leaky", this); }
struct Leaky : Relu { ~Leaky(); };  /* has what Relu has */
Leaky::~Leaky() {}

struct Other { virtual ~Other(); virtual int Compute(Run *); long field[3]; };
Other::~Other() {}
int Other::Compute(Run *) { return 9; }
struct Second : Other, Kernel { int Compute(Run *run) const override; };  /* Kernel is not its first base */
int Second::Compute(Run *run) const { return run->log("rt::Second", static_cast<const Kernel *>(this)); }

struct Thrower : Kernel { int Compute(Run *run) const override; };
int Thrower::Compute(Run *run) const { work(run); throw std::runtime_error("toy"); }

struct Jumper : Kernel { int Compute(Run *run) const override; };
int Jumper::Compute(Run *run) const { work(run); longjmp(back, 1); }
}
using namespace rt;

static __attribute__((noinline)) void step(const Kernel *kernel, Run *run)
{
	try {
		kernel->Compute(run);
	} catch (const std::runtime_error &) {
		run->caught++;
	}
}

static __attribute__((noinline)) void deep_step(const Kernel *kernel, Run *run)
{
	volatile char room[512] = { 0 };

	step(kernel, run);
	room[1] = room[0];
}

struct Program { std::vector<std::pair<const Kernel *, bool>> kernels; };

static Kernel *make(char letter)
{
	switch (letter) {
	case 'g': return new Gemm<float>;
	case 'r': return new Relu;
	case 'l': return new Leaky;
	case 's': return new Second;
	case 't': return new Thrower;
	default: return new Jumper;
	}
}

/*
 * One operator a letter. A digit before it: so many launches in it; '(': it lies inside the one before; '_': it is
 * called from deeper on the stack.
 */
extern "C" Program *toy_load(const char *text)
{
	auto *program = new Program;
	Kernel *last = nullptr;
	int launches = 0;
	bool inside = false, deep = false;

	for (; *text; text++) {
		if (*text >= '0' && *text <= '9') {
			launches = *text - '0';
		} else if (*text == '(') {
			inside = true;
		} else if (*text == '_') {
			deep = true;
		} else {
			Kernel *kernel = make(*text);

			kernel->launches = launches;
			if (inside)
				last->inner = kernel;
			else
				program->kernels.emplace_back(kernel, deep);
			last = kernel;
			launches = 0;
			inside = deep = false;
		}
	}
	return program;
}

extern "C" int toy_run(Program *program, Run *run)
{
	for (volatile size_t i = 0; i < program->kernels.size(); i++) {
		const auto &kernel = program->kernels[i];

		if (setjmp(back))
			run->caught++;
		else
			(kernel.second ? deep_step : step)(kernel.first, run);
	}
	return 0;
}
"""
HEADER = r"""
#include <string>
#include <typeinfo>
#include <vector>
struct Program;
struct Run {
	void *functions[2];
	int caught = 0;
	std::vector<std::pair<const char *, const void *>> done;
	int log(const char *name, const void *object) { done.emplace_back(name, object); return 0; }
};
extern "C" __attribute__((visibility("default"))) Program *toy_load(const char *text);
extern "C" __attribute__((visibility("default"))) int toy_run(Program *program, Run *run);
"""
# main TEXT RUNS THREADS: a program for each thread
MAIN = r"""
#include <cstdio>
#include <cstdlib>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include "toy.h"

extern "C" int cuInit(unsigned);
extern "C" int cuCtxCreate_v2(void **, unsigned, int);
extern "C" int cuModuleLoad(void **, const char *);
extern "C" int cuModuleGetFunction(void **, void *, const char *);

int main(int argc, char **argv)
{
	int runs = atoi(argv[2]), threads = atoi(argv[3]);
	std::vector<Run> made(threads);
	std::vector<Program *> programs;
	std::vector<std::thread> running;
	std::vector<long> tids(threads);
	void *context, *module, *functions[2];

	for (int i = 0; i < threads; i++)
		programs.push_back(toy_load(argv[1]));
	cuInit(0);
	cuCtxCreate_v2(&context, 0, 0);
	cuModuleLoad(&module, "kernels");
	cuModuleGetFunction(&functions[0], module, "multiply");
	cuModuleGetFunction(&functions[1], module, "add_bias");
	for (int i = 0; i < threads; i++) {
		running.emplace_back([&, i] {
			tids[i] = syscall(SYS_gettid);
			made[i].functions[0] = functions[0];
			made[i].functions[1] = functions[1];
			for (int run = 0; run < runs; run++)
				toy_run(programs[i], &made[i]);
		});
	}
	for (auto &thread : running)
		thread.join();
	printf("{\"runtime\":\"toy\",\"pid\":%d,\"threads\":[", getpid());
	for (int i = 0; i < threads; i++) {
		printf("%s{\"tid\":%ld,\"caught\":%d,\"done\":[", i ? "," : "", tids[i], made[i].caught);
		for (size_t k = 0; k < made[i].done.size(); k++)
			printf("%s[\"%s\",\"%p\"]", k ? "," : "", made[i].done[k].first, made[i].done[k].second);
		printf("]}");
	}
	printf("]}\n");
	return 0;
}
"""
DESCRIPTION = {
    "schema": 1, "runtime": "toy", "title": "Toy", "identify": ["toy_run"],
    "operators": {"base": "rt::Kernel", "methods": [{"name": "Compute", "slot": 2, "object": "arg0"}]},
    "calls": [{"symbol": "toy_run", "role": "execute", "fetch": {"program": "arg0"}}]}
_built = []


def compile_cpp(folder, name, text, *options):
    compiler = shutil.which("g++")
    if not compiler:
        raise Skip("g++ is not installed")
    source = os.path.join(folder, name + ".cpp")
    with open(source, "w", encoding="ascii") as file:
        file.write(text)
    subprocess.run([compiler, "-O1", "-o", os.path.join(folder, name), source, *options], check=True)


def build():
    """The folder with the program and the description of its runtime."""
    if not _built:
        folder = scratch()
        cuda = library_path("libcuda.so.1")
        with open(os.path.join(folder, "toy.h"), "w", encoding="ascii") as file:
            file.write(HEADER)
        with open(os.path.join(folder, "toy.json"), "w", encoding="utf-8") as file:
            json.dump(DESCRIPTION, file)
        rpath = "-Wl,-rpath,$ORIGIN:" + os.path.dirname(cuda)
        compile_cpp(folder, "libtoy.so", LIBRARY, "-fPIC", "-shared", cuda, rpath)
        subprocess.run(["strip", "-s", os.path.join(folder, "libtoy.so")], check=True)
        compile_cpp(folder, "main", MAIN, os.path.join(folder, "libtoy.so"), cuda, rpath, "-pthread")
        _built.append(folder)
    return _built[0]


def description():
    return os.path.join(build(), "toy.json")


def toy(text, runs=1, threads=1):
    """The command that runs it."""
    return [os.path.join(build(), "main"), text, str(runs), str(threads)]
