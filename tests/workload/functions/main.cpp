/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that are left in every way a function can be: by return, exception, longjmp and a jump to another one. Prints for each how often
 * it was called and returned, and for how long, as a caller sees it.
 *
 *	functions ROUNDS [wait]
 */
#include <chrono>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{
struct tally {
	long called, returned;
	long long ns;
};
std::map<std::string, tally> tallies;
std::mutex lock;
std::jmp_buf back;
} // namespace

#define APART __attribute__((noinline, used))

/* Counts what happens to a call of the function; what is thrown goes on. */
template <typename call> static void count(const char *name, call made)
{
	const auto start = std::chrono::steady_clock::now();
	bool returned = false;

	try {
		made();
		returned = true;
	} catch (const std::runtime_error &) {
	}
	const auto time = std::chrono::steady_clock::now() - start;
	const std::lock_guard<std::mutex> guard(lock);
	tallies[name].called++;
	if (!returned)
		return;
	tallies[name].returned++;
	tallies[name].ns += std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

namespace app
{
struct Decoder {
	volatile int depth = 0;

	APART int decode(int rounds);
	APART int fail(int round);
	APART int deep(int left);
};

template <typename number> struct Scale {
	APART static number apply(number value);
};

int Decoder::decode(int rounds)
{
	usleep(300);
	if (rounds > 0)
		depth = decode(rounds - 1); /* no loop can be made of this */
	return depth + 1;
}

int Decoder::fail(int round)
{
	usleep(100);
	if (round % 2)
		throw std::runtime_error("odd");
	return round;
}

/* Many open at once, all left by one exception. */
int Decoder::deep(int left)
{
	if (!left)
		throw std::runtime_error("deep");
	return deep(left - 1) + depth;
}

template <typename number> number Scale<number>::apply(number value)
{
	usleep(50);
	return value * 2;
}
template struct Scale<float>;
} // namespace app

extern "C" {
APART int plain_leaf(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

APART void plain_jump(int value)
{
	usleep(20);
	if (value % 3 == 0)
		std::longjmp(back, 1);
}

APART int plain_target(int value)
{
	usleep(200);
	return value;
}

/* Ends in a jump: the return address is the caller's. */
APART int plain_tail(int value)
{
	usleep(100);
	return plain_target(value);
}
}

static void round_of(int round)
{
	app::Decoder decoder;
	volatile int jumped = 0;

	count("app::Decoder::decode", [&] { decoder.decode(2); });
	count("app::Decoder::fail", [&] { decoder.fail(round); });
	count("app::Decoder::deep", [&] { decoder.deep(20); });
	count("app::Scale<float>::apply", [&] { app::Scale<float>::apply(2); });
	count("plain_leaf", [&] { plain_leaf(round); });
	count("plain_tail", [&] { plain_tail(round); });
	count("plain_target", [&] { plain_target(round); });
	if (!setjmp(back)) {
		plain_jump(round);
		jumped = 1;
	}
	const std::lock_guard<std::mutex> guard(lock);
	tallies["plain_jump"].called++;
	tallies["plain_jump"].returned += jumped;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;

	if (argc > 2) {
		std::puts("ready");
		std::fflush(stdout);
		std::getchar();
	}
	for (int round = 0; round < rounds; round++)
		round_of(round);
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([rounds] {
			app::Decoder decoder;

			for (int round = 0; round < rounds; round++)
				count("app::Decoder::fail", [&] { decoder.fail(round); });
		});
	for (auto &thread : threads)
		thread.join();
	for (const auto &one : tallies)
		std::printf("%s called %ld returned %ld ns %lld\n", one.first.c_str(), one.second.called,
			    one.second.returned, one.second.ns);
	return 0;
}
