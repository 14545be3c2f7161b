/* SPDX-License-Identifier: BSD-2-Clause */
/* functions TEXT RUNS THREADS: an operator for each letter, and one line of JSON that says what was executed. */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include "functions.h"

using namespace at;

static void execute(char letter, Tensor &a, Tensor &b)
{
	switch (letter) {
	case 'a': _ops::add_Tensor::call(a, b, {}); break;
	case 'm': _ops::mm::call(a, b); break;
	case 'l': _ops::linear::call(a, b); break;
	case 'z': _ops::zero_::call(a); break;
	default: _ops::linalg::call(a); /* throws */
	}
}

static void run(const char *text, int runs, Done *done)
{
	Tensor a, b;

	_ops::done = done;
	for (int i = 0; i < runs; i++) {
		for (const char *letter = text; *letter; letter++) {
			try {
				execute(*letter, a, b);
			} catch (const std::runtime_error &) {
				done->caught++;
			}
		}
	}
}

int main(int argc, char **argv)
{
	int runs = argc == 4 ? atoi(argv[2]) : 0, threads = runs ? atoi(argv[3]) : 0;
	std::vector<Done> done(threads);
	std::vector<std::thread> running;
	std::vector<long> tids(threads);

	for (int i = 0; i < threads; i++) {
		running.emplace_back([&, i] {
			tids[i] = syscall(SYS_gettid);
			run(argv[1], runs, &done[i]);
		});
	}
	for (auto &thread : running)
		thread.join();
	printf("{\"runtime\":\"libtorch\",\"pid\":%d,\"threads\":[", getpid());
	for (int i = 0; i < threads; i++) {
		printf("%s{\"tid\":%ld,\"caught\":%d,\"done\":[", i ? "," : "", tids[i], done[i].caught);
		for (size_t k = 0; k < done[i].names.size(); k++)
			printf("%s\"%s\"", k ? "," : "", done[i].names[k]);
		printf("]}");
	}
	printf("]}\n");
	return 0;
}
