/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main TEXT RUNS THREADS [wait]: a program and a stream for each thread, which waits for the stream at its end; and one line
 * of JSON that says what was executed. wait: prints {"ready"...} and begins with a line.
 */
#include <cstdio>
#include <cstdlib>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include "toy.h"

extern "C" {
#include "../accelerator.h"
}
extern "C" int cuInit(unsigned);
extern "C" int cuCtxCreate_v2(void **, unsigned, int);
extern "C" int cuModuleLoad(void **, const char *);
extern "C" int cuModuleGetFunction(void **, void *, const char *);
extern "C" int cuStreamCreate(void **, unsigned);
extern "C" int cuStreamSynchronize(void *);

/* With the device's numbers of the jobs, if there is one (accelerator.h). */
static void print_launched(const Run &run)
{
	const struct accelerator_job *jobs;
	const size_t count = accelerator_jobs(&jobs);
	const char *separator = "";

	for (const auto &launched : run.launched) {
		for (size_t i = 0; i < count; i++) {
			if (jobs[i].submission != launched.first)
				continue;
			printf("%s[%llu,\"%p\"]", separator, (unsigned long long)jobs[i].number, launched.second);
			separator = ",";
		}
	}
}

int main(int argc, char **argv)
{
	int runs = argc == 4 || argc == 5 ? atoi(argv[2]) : 0, threads = runs ? atoi(argv[3]) : 0;
	std::vector<Run> made(threads);
	std::vector<Program *> programs;
	std::vector<std::thread> running;
	std::vector<long> tids(threads);
	void *context, *module, *functions[2];

	if (argc == 5) {
		printf("{\"ready\":true,\"pid\":%d}\n", getpid());
		fflush(stdout);
		getchar();
	}
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
			cuStreamCreate(&made[i].stream, 0);
			for (int run = 0; run < runs; run++)
				toy_run(programs[i], &made[i]);
			cuStreamSynchronize(made[i].stream);
		});
	}
	for (auto &thread : running)
		thread.join();
	printf("{\"runtime\":\"toy\",\"pid\":%d,\"threads\":[", getpid());
	for (int i = 0; i < threads; i++) {
		printf("%s{\"tid\":%ld,\"caught\":%d,\"done\":[", i ? "," : "", tids[i], made[i].caught);
		for (size_t k = 0; k < made[i].done.size(); k++)
			printf("%s[\"%s\",\"%p\"]", k ? "," : "", made[i].done[k].first, made[i].done[k].second);
		printf("],\"launched\":[");
		print_launched(made[i]);
		printf("]}");
	}
	printf("]}\n");
	return 0;
}
