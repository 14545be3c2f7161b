/* SPDX-License-Identifier: BSD-2-Clause */
#include <csetjmp>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include "toy.h"

extern "C" {
#include "../accelerator.h"
}
extern "C" int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
			      void **, void **);
namespace rt {
thread_local jmp_buf back;

/*
 * CPU time that operators take, and how much it varies: TOY_GEMM_US and TOY_RELU_US, microseconds of each Gemm and Relu;
 * TOY_NOISE, percent: evenly between so much less and so much more.
 */
static long setting(const char *name)
{
	const char *text = getenv(name);

	return text ? atol(text) : 0;
}
static const long gemm_us = setting("TOY_GEMM_US"), relu_us = setting("TOY_RELU_US"), noise = setting("TOY_NOISE");

static uint64_t cpu_time()
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void burn(long microseconds)
{
	thread_local unsigned int seed = 1;
	uint64_t end;

	if (!microseconds)
		return;
	end = cpu_time() + (uint64_t)(microseconds * (1000 + (noise ? rand_r(&seed) % (20 * noise + 1) - 10 * noise : 0)));
	while (cpu_time() < end)
		;
}

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
	for (int i = 0; i < launches; i++) {
		cuLaunchKernel(run->functions[i % 2], 1, 1, 1, 1, 1, 1, 0, run->stream, nullptr, nullptr);
		if (accelerator_last())
			run->launched.emplace_back(accelerator_last(), this);
	}
	if (inner)
		inner->Compute(run);
}

template <class T> struct Gemm : Kernel {
	int Compute(Run *run) const override { burn(gemm_us); work(run); return run->log("rt::Gemm<float>", this); }
};
template struct Gemm<float>;

struct Relu : Kernel { int Compute(Run *run) const override; };
int Relu::Compute(Run *run) const
{
	burn(relu_us);
	return run->log(typeid(*this) == typeid(Relu) ? "rt::Relu" : "rt::Leaky", this);
}
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
