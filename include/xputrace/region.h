/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named regions of a program's own code, for C99 and C++11 and later: nothing to link, nothing needed at run time.
 *
 *	static struct xpt_region preprocess = XPT_REGION_INIT("preprocess");
 *
 *	xpt_region_start(&preprocess);
 *	...
 *	xpt_region_stop(&preprocess);
 *
 * A region that nobody looks at costs two loads and a branch at either end. Two can look, at the same time too:
 *
 *   - From outside: every start and stop executes a static probe, xputrace:region_begin or xputrace:region_end, with
 *     the address of the region and its name as arguments, while the probes' semaphore is not 0 (notes in
 *     .note.stapsdt, as of <sys/sdt.h>; x86-64 and AArch64).
 *   - In the process, when XPUTRACE_REGIONS=enabled was in the environment (or VACCEL_PROF_ENABLED=enabled, or
 *     VACCEL_PROFILING_ENABLED=1): the region itself keeps how often and for how long. The environment is read once,
 *     at the first use, and never by a program that runs with other privileges than its caller's.
 *
 * One region may be started by several threads at once, and again by a thread that has started it already: a stop ends
 * the latest start of that region by the same thread. Shared objects may share a region, as long as the one that
 * initialised it is loaded. A child that fork() made has the regions that its thread had open, and counts for itself.
 * What was not stopped when the thread or the process ends is not counted.
 *
 * With XPT_REGION_EXTERN defined before this header is included, the same functions come from libxputrace instead: for
 * other languages and for programs that shall not carry the code. A region that was initialised so is used so only.
 */
#ifndef XPUTRACE_REGION_H
#define XPUTRACE_REGION_H

#if !defined(__linux__) || !defined(__GNUC__)
#error "regions need Linux and a compiler that knows the GNU extensions"
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef XPT_REGION_API
#ifdef XPT_REGION_EXTERN
#define XPT_REGION_API __attribute__((visibility("default")))
#else
#define XPT_REGION_API static inline
#endif
#endif

#define XPT_REGION_SAMPLES 1024 /* the latest that a region keeps */
#define XPT_REGION_SAMPLED \
	1024		   /* regions of an executable or shared object that keep samples, the first to be stopped */
#define XPT_REGION_OPEN 64 /* starts that a thread may have open; the oldest is forgotten for one more */

/* One start and its stop. */
struct xpt_region_sample {
	uint64_t start; /* ns, CLOCK_MONOTONIC */
	uint64_t time;	/* ns until the stop */
};

/*
 * A region. The layout is part of the interface; all but the name belongs to the functions below. 0 everywhere is a
 * region without a name.
 */
struct xpt_region {
	const char *name; /* not copied: it must live as long as the region */
	void (*keep)(struct xpt_region *region, int what);
	uint64_t entries;
	uint64_t total;
	uint64_t longest;
	uint64_t unshortest; /* all ones minus the shortest, so that 0 is none */
	uint64_t unmatched;
	struct xpt_region_sample *samples;
	uint64_t reserved[2];
};

/* What a region has kept; all 0 unless it was enabled in the process. */
struct xpt_region_totals {
	uint64_t entries;    /* starts that were stopped */
	uint64_t total_time; /* ns, the sum of their times; nested ones count each */
	uint64_t min_time;   /* ns; 0 without entries */
	uint64_t max_time;   /* ns */
	uint64_t unmatched;  /* stops without a start by the same thread, or whose start was forgotten */
};

/* Initialises a variable. name: a string that lives as long. */
#define XPT_REGION_INIT(name)                                  \
	{                                                      \
		(name), XPT_REGION_KEEP_, 0, 0, 0, 0, 0, NULL, \
		{                                              \
			0, 0                                   \
		}                                              \
	}

/* 1: regions keep count in this process; 0: the environment does not ask for it. */
XPT_REGION_API int xpt_region_enabled(void);

/* Makes an empty region of any memory. name: not copied, NULL is "". */
XPT_REGION_API void xpt_region_init(struct xpt_region *region, const char *name);

/* Begins the region for this thread. */
XPT_REGION_API void xpt_region_start(struct xpt_region *region);

/* Ends what this thread has begun last of the region. Without a start nothing but that is counted. */
XPT_REGION_API void xpt_region_stop(struct xpt_region *region);

/*
 * The same for one request: its id, such as a W3C traceparent, is shown with the region, and `xputrace report --request` finds it. At most 247
 * bytes of it; NULL or "": none. From outside it is a region "request=ID" inside this one, with an address of its own (this one's plus 1),
 * which is not counted in the process. What was started so is stopped so.
 */
XPT_REGION_API void xpt_region_start_request(struct xpt_region *region, const char *request);
XPT_REGION_API void xpt_region_stop_request(struct xpt_region *region);

/* What was kept so far. Exact while no thread stops the region; else each number by itself is. */
XPT_REGION_API void xpt_region_get(const struct xpt_region *region, struct xpt_region_totals *totals);

/*
 * Copies the latest samples, oldest first: as many as there are, at most count and XPT_REGION_SAMPLES. Returns how
 * many. One that is just being written may come with the start of another.
 */
XPT_REGION_API size_t xpt_region_get_samples(const struct xpt_region *region, struct xpt_region_sample *samples,
					     size_t count);

/*
 * Writes one line to standard error, as vAccel has it: "[prof] NAME: total_time: N nsec nr_entries: M". In the name a
 * backslash is doubled and a control character written as \n, \r, \t or \xNN. Nothing when regions are not enabled.
 */
XPT_REGION_API void xpt_region_print(const struct xpt_region *region);

/* Forgets what was kept; starts that are open stay so. Other threads may use the region meanwhile. */
XPT_REGION_API void xpt_region_clear(struct xpt_region *region);

/* Frees what the region holds and forgets this thread's starts. No other thread uses it. It may be used again. */
XPT_REGION_API void xpt_region_destroy(struct xpt_region *region);

/* The same for count regions that lie one after the other. xpt_regions_init leaves them without a name. */
XPT_REGION_API void xpt_regions_init(struct xpt_region *regions, size_t count);
XPT_REGION_API void xpt_regions_clear(struct xpt_region *regions, size_t count);
XPT_REGION_API void xpt_regions_destroy(struct xpt_region *regions, size_t count);
XPT_REGION_API void xpt_regions_print_all(const struct xpt_region *regions, size_t count);

/* Starts or stops the first region of that name (in vAccel it is the last). 0, or -ENOENT: none has it. */
XPT_REGION_API int xpt_regions_start_by_name(struct xpt_region *regions, size_t count, const char *name);
XPT_REGION_API int xpt_regions_stop_by_name(struct xpt_region *regions, size_t count, const char *name);

/*
 * Writes the lines of xpt_regions_print_all into *buffer, which has room for size bytes, and a 0 behind them. Where
 * *buffer is NULL, room for all is allocated, to be given to free(). Returns the bytes that all lines need without the
 * 0: the text was cut when that is size or more and *buffer was given. -ENOMEM: no memory.
 */
XPT_REGION_API long xpt_regions_print_all_to_buf(char **buffer, size_t size, const struct xpt_region *regions,
						 size_t count);

/*
 * XPT_REGION_SCOPE(&region); as a statement: from here to the end of the block, however it is left. In C++ that is an
 * object of class xpt_region_scope, which may also be made by itself.
 */
#define XPT_REGION_SCOPE(region) XPT_REGION_SCOPE_AT_(region, __LINE__)
#define XPT_REGION_SCOPE_AT_(region, line) XPT_REGION_SCOPE_NAMED_(region, line)
#ifdef __cplusplus
#define XPT_REGION_SCOPE_NAMED_(region, line) const xpt_region_scope xpt_region_scope_##line(region)
#else
#define XPT_REGION_SCOPE_NAMED_(region, line)            \
	struct xpt_region *const xpt_region_scope_##line \
		__attribute__((cleanup(xpt_region_scope_end_), unused)) = xpt_region_scope_begin_(region)
#endif

/* ---- from here on nothing is part of the interface ---- */

#ifdef XPT_REGION_EXTERN
#define XPT_REGION_KEEP_ NULL
#else
#define XPT_REGION_KEEP_ xpt_region_keep_
/* One a linked object, whatever the number of sources that include this. */
#define XPT_REGION_ONE_ __attribute__((weak, visibility("hidden")))
#define XPT_REGION_HIDDEN_ __attribute__((visibility("hidden")))

/*
 * The markers: two functions that do nothing, called only while somebody has raised the semaphore. A probe goes onto
 * the nop at the entry.
 *
 * The nop has one byte. Kernels emulate it (about 0.5 us), while most other instructions are stepped (several times as
 * much in a virtual machine). A nop of 5 bytes, as for <sys/sdt.h>, would be stepped by older kernels as well, and from
 * 6.18 on it becomes a call, which writes a return address below the stack pointer. Inside a function that is wrong:
 * a leaf function may have its variables there, in the red zone of 128 bytes. So the markers are no inline assembler
 * that would land in the middle of any function, but functions of their own: a compiler that calls one keeps nothing
 * below the stack pointer, the entry of the marker has nothing there either, and whatever a probe writes there is safe.
 *
 * The semaphore begins a page of the file. Linkers that make a segment of its own of what is read-only after relocation
 * (lld) map the page in between twice, and the kernel, which knows the semaphore by its place in the file, would raise
 * it in the wrong mapping.
 *
 * The section group makes it one pair a linked object; .ifndef does so when link-time optimisation puts the text of
 * several sources into one.
 */
#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define XPT_REGION_MARKED_ 1

#if defined(__x86_64__)
#define XPT_REGION_ARGUMENTS_ "8@%rdi 8@%rsi"
#if defined(__CET__) && (__CET__ & 1)
#define XPT_REGION_LANDING_ "\tendbr64\n"
#endif
#else
#define XPT_REGION_ARGUMENTS_ "8@x0 8@x1"
#ifdef __ARM_FEATURE_BTI_DEFAULT
#define XPT_REGION_LANDING_ "\thint #34\n" /* bti c */
#endif
#endif
#ifndef XPT_REGION_LANDING_
#define XPT_REGION_LANDING_ ""
#endif

#define XPT_REGION_GROUP_(section, flags, type) \
	"\t.pushsection " section ",\"" flags "G\",%" type ",xpt_region,comdat\n"
#define XPT_REGION_SYMBOL_(name, type) "\t.weak " name "\n\t.hidden " name "\n\t.type " name ", %" type "\n" name ":\n"
#define XPT_REGION_MARKER_(function, probe)                                                                      \
	XPT_REGION_GROUP_(".text.xpt_region", "ax", "progbits")                                                  \
	"\t.balign 16\n" XPT_REGION_SYMBOL_(function, "function") XPT_REGION_LANDING_                            \
		"990:\tnop\n\tret\n"                                                                             \
		"\t.size " function ", . - " function "\n\t.popsection\n" XPT_REGION_GROUP_(                     \
			".note.stapsdt", "", "note") "\t.balign 4\n\t.4byte 992f - 991f, 994f - 993f, 3\n"       \
						     "991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n"               \
						     "993:\t.8byte 990b, _.stapsdt.base, xpt_region_semaphore\n" \
						     "\t.asciz \"xputrace\"\n\t.asciz \"" probe                  \
						     "\"\n\t.asciz \"" XPT_REGION_ARGUMENTS_ "\"\n"              \
						     "994:\t.balign 4\n\t.popsection\n"

/* clang-format off */
__asm__("\t.ifndef xpt_region_semaphore\n"
	XPT_REGION_GROUP_(".probes", "aw", "progbits")
	"\t.balign 4096\n" XPT_REGION_SYMBOL_("xpt_region_semaphore", "object")
	"\t.2byte 0\n\t.size xpt_region_semaphore, 2\n\t.popsection\n"
	XPT_REGION_MARKER_("xpt_region_begin_site", "region_begin")
	XPT_REGION_MARKER_("xpt_region_end_site", "region_end")
	"\t.endif\n"
	/* As <sys/sdt.h> has it: tools find by it how far the object was moved. */
	"\t.ifndef _.stapsdt.base\n"
	"\t.pushsection .stapsdt.base,\"aG\",%progbits,.stapsdt.base,comdat\n"
	"\t.weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n"
	"_.stapsdt.base:\t.space 1\n\t.size _.stapsdt.base, 1\n\t.popsection\n"
	"\t.endif\n");
/* clang-format on */

extern volatile unsigned short xpt_region_semaphore XPT_REGION_HIDDEN_;
extern void xpt_region_begin_site(struct xpt_region *region, const char *name) XPT_REGION_HIDDEN_;
extern void xpt_region_end_site(struct xpt_region *region, const char *name) XPT_REGION_HIDDEN_;
#else
#define XPT_REGION_MARKED_ 0
#define xpt_region_semaphore 0
#define xpt_region_begin_site(region, name) ((void)0)
#define xpt_region_end_site(region, name) ((void)0)
#endif

enum xpt_region_mode { XPT_REGION_OFF = 0, XPT_REGION_UNKNOWN = 1, XPT_REGION_ON = 2 };

/* What objects ask of each other: explicit numbers. */
enum xpt_region_event { XPT_REGION_START = 1, XPT_REGION_STOP = 2, XPT_REGION_FORGET = 3 };

/* What a thread has started and not stopped: a ring of the latest. */
struct xpt_region_stack {
	struct {
		const struct xpt_region *region;
		uint64_t start;
	} open[XPT_REGION_OPEN];
	unsigned int next; /* where the next start goes, without end */
	unsigned int depth;
};

extern int xpt_region_mode_ XPT_REGION_HIDDEN_;
extern unsigned int xpt_region_sampled_ XPT_REGION_HIDDEN_;
extern __thread struct xpt_region_stack xpt_region_stack_ XPT_REGION_HIDDEN_;
void xpt_region_keep_(struct xpt_region *region, int what) XPT_REGION_HIDDEN_;
void xpt_region_started_(struct xpt_region *region) XPT_REGION_HIDDEN_;
void xpt_region_stopped_(struct xpt_region *region) XPT_REGION_HIDDEN_;
void xpt_region_request_(struct xpt_region *region, const char *request) XPT_REGION_HIDDEN_;

XPT_REGION_ONE_ int xpt_region_mode_ = XPT_REGION_UNKNOWN;
XPT_REGION_ONE_ unsigned int xpt_region_sampled_ = 0;
XPT_REGION_ONE_ __thread struct xpt_region_stack xpt_region_stack_ = { { { NULL, 0 } }, 0, 0 };

static inline uint64_t xpt_region_now_(void)
{
#ifdef CLOCK_MONOTONIC
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#else /* strict C: <time.h> does not say what the C library has all the same */
	struct {
		long seconds, nanoseconds;
	} now;
	extern int xpt_region_clock_(int clock, void *now) __asm__("clock_gettime");

	xpt_region_clock_(1, &now);
	return (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
#endif
}

static inline int xpt_region_asked_for_(const char *variable)
{
	const char *value = getenv(variable);

	return value && (!strcmp(value, "enabled") || !strcmp(value, "1"));
}

XPT_REGION_API int xpt_region_enabled(void)
{
	int mode = __atomic_load_n(&xpt_region_mode_, __ATOMIC_RELAXED);

	/* Threads that come here together find the same. */
	if (mode == XPT_REGION_UNKNOWN) {
		mode = !getauxval(AT_SECURE) && (xpt_region_asked_for_("XPUTRACE_REGIONS") ||
						 xpt_region_asked_for_("VACCEL_PROF_ENABLED") ||
						 xpt_region_asked_for_("VACCEL_PROFILING_ENABLED")) ?
			       XPT_REGION_ON :
			       XPT_REGION_OFF;
		__atomic_store_n(&xpt_region_mode_, mode, __ATOMIC_RELAXED);
	}
	return mode == XPT_REGION_ON;
}

/* Takes the latest start of the region out of the stack. 0: there is none. */
static inline int xpt_region_take_start_(struct xpt_region_stack *stack, const struct xpt_region *region,
					 uint64_t *start)
{
	unsigned int back;

	for (back = 1; back <= stack->depth; back++) {
		if (stack->open[(stack->next - back) % XPT_REGION_OPEN].region != region)
			continue;
		*start = stack->open[(stack->next - back) % XPT_REGION_OPEN].start;
		for (; back > 1; back--)
			stack->open[(stack->next - back) % XPT_REGION_OPEN] =
				stack->open[(stack->next - back + 1) % XPT_REGION_OPEN];
		stack->next--;
		stack->depth--;
		return 1;
	}
	return 0;
}

/* Room for samples at the first stop; NULL: none left. */
static inline struct xpt_region_sample *xpt_region_room_(struct xpt_region *region)
{
	struct xpt_region_sample *samples = __atomic_load_n(&region->samples, __ATOMIC_ACQUIRE), *others = NULL;

	if (samples || __atomic_load_n(&xpt_region_sampled_, __ATOMIC_RELAXED) >= XPT_REGION_SAMPLED)
		return samples;
	if (__atomic_fetch_add(&xpt_region_sampled_, 1, __ATOMIC_RELAXED) < XPT_REGION_SAMPLED) {
		samples = (struct xpt_region_sample *)calloc(XPT_REGION_SAMPLES, sizeof(*samples));
		if (samples && __atomic_compare_exchange_n(&region->samples, &others, samples, 0, __ATOMIC_ACQ_REL,
							   __ATOMIC_ACQUIRE))
			return samples;
		free(samples);
	}
	__atomic_fetch_sub(&xpt_region_sampled_, 1, __ATOMIC_RELAXED);
	return others;
}

static inline void xpt_region_raise_(uint64_t *most, uint64_t value)
{
	uint64_t old = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (value > old && !__atomic_compare_exchange_n(most, &old, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static inline void xpt_region_count_(struct xpt_region *region, uint64_t start, uint64_t time)
{
	struct xpt_region_sample *samples = xpt_region_room_(region);
	uint64_t number = __atomic_fetch_add(&region->entries, 1, __ATOMIC_RELAXED);

	__atomic_fetch_add(&region->total, time, __ATOMIC_RELAXED);
	xpt_region_raise_(&region->longest, time);
	xpt_region_raise_(&region->unshortest, ~time);
	if (samples) {
		__atomic_store_n(&samples[number % XPT_REGION_SAMPLES].start, start, __ATOMIC_RELAXED);
		__atomic_store_n(&samples[number % XPT_REGION_SAMPLES].time, time, __ATOMIC_RELAXED);
	}
}

/*
 * All that touches the stacks of threads. A region calls the one of the object that initialised it, so that a start in
 * one object and a stop in another meet on the same stack.
 */
XPT_REGION_ONE_ void xpt_region_keep_(struct xpt_region *region, int what)
{
	struct xpt_region_stack *stack = &xpt_region_stack_;
	uint64_t now = what == XPT_REGION_STOP ? xpt_region_now_() : 0, start;
	unsigned int slot;

	switch (what) {
	case XPT_REGION_START:
		slot = stack->next++ % XPT_REGION_OPEN;
		if (stack->depth < XPT_REGION_OPEN)
			stack->depth++;
		stack->open[slot].region = region;
		stack->open[slot].start = xpt_region_now_();
		break;
	case XPT_REGION_STOP:
		if (xpt_region_take_start_(stack, region, &start))
			xpt_region_count_(region, start, now - start);
		else
			__atomic_fetch_add(&region->unmatched, 1, __ATOMIC_RELAXED);
		break;
	default:
		while (xpt_region_take_start_(stack, region, &start))
			;
		if (region->samples)
			__atomic_fetch_sub(&xpt_region_sampled_, 1, __ATOMIC_RELAXED);
		free(region->samples);
		region->samples = NULL;
	}
}

static inline void xpt_region_emit_(struct xpt_region *region, int what)
{
	if (region->keep)
		region->keep(region, what);
	else
		xpt_region_keep_(region, what);
}

XPT_REGION_ONE_ void xpt_region_started_(struct xpt_region *region)
{
	if (xpt_region_semaphore)
		xpt_region_begin_site(region, region->name);
	if (xpt_region_enabled())
		xpt_region_emit_(region, XPT_REGION_START);
}

XPT_REGION_ONE_ void xpt_region_stopped_(struct xpt_region *region)
{
	if (xpt_region_enabled())
		xpt_region_emit_(region, XPT_REGION_STOP);
	if (xpt_region_semaphore)
		xpt_region_end_site(region, region->name);
}

/* The region of a request, which only those see who look from outside. */
static inline struct xpt_region *xpt_region_of_request_(struct xpt_region *region)
{
	return (struct xpt_region *)((char *)region + 1);
}

XPT_REGION_ONE_ void xpt_region_request_(struct xpt_region *region, const char *request)
{
	static const char key[] = "request=";
	char name[256] = ""; /* what is read of a name */
	size_t length = strlen(request), most = sizeof(name) - sizeof(key);

	(void)region;
	memcpy(name, key, sizeof(key) - 1);
	memcpy(name + sizeof(key) - 1, request, length < most ? length : most);
	xpt_region_begin_site(xpt_region_of_request_(region), name);
}

/* Not 0: somebody looks, or it is not known yet. */
static inline int xpt_region_seen_(void)
{
	return __builtin_expect(xpt_region_semaphore | __atomic_load_n(&xpt_region_mode_, __ATOMIC_RELAXED), 0) != 0;
}

XPT_REGION_API void xpt_region_start(struct xpt_region *region)
{
	if (xpt_region_seen_())
		xpt_region_started_(region);
}

XPT_REGION_API void xpt_region_stop(struct xpt_region *region)
{
	if (xpt_region_seen_())
		xpt_region_stopped_(region);
}

XPT_REGION_API void xpt_region_start_request(struct xpt_region *region, const char *request)
{
	xpt_region_start(region);
	if (xpt_region_semaphore && request && *request)
		xpt_region_request_(region, request);
}

XPT_REGION_API void xpt_region_stop_request(struct xpt_region *region)
{
	if (xpt_region_semaphore)
		xpt_region_end_site(xpt_region_of_request_(region), NULL);
	xpt_region_stop(region);
}

XPT_REGION_API void xpt_region_init(struct xpt_region *region, const char *name)
{
	memset(region, 0, sizeof(*region));
	region->name = name ? name : "";
	region->keep = xpt_region_keep_;
}

XPT_REGION_API void xpt_region_get(const struct xpt_region *region, struct xpt_region_totals *totals)
{
	uint64_t unshortest = __atomic_load_n(&region->unshortest, __ATOMIC_RELAXED);

	totals->entries = __atomic_load_n(&region->entries, __ATOMIC_RELAXED);
	totals->total_time = __atomic_load_n(&region->total, __ATOMIC_RELAXED);
	totals->min_time = unshortest ? ~unshortest : 0;
	totals->max_time = __atomic_load_n(&region->longest, __ATOMIC_RELAXED);
	totals->unmatched = __atomic_load_n(&region->unmatched, __ATOMIC_RELAXED);
}

XPT_REGION_API size_t xpt_region_get_samples(const struct xpt_region *region, struct xpt_region_sample *samples,
					     size_t count)
{
	const struct xpt_region_sample *kept = __atomic_load_n(&region->samples, __ATOMIC_ACQUIRE);
	uint64_t entries = __atomic_load_n(&region->entries, __ATOMIC_RELAXED), number;
	size_t most = entries < XPT_REGION_SAMPLES ? (size_t)entries : XPT_REGION_SAMPLES, i;

	if (!kept)
		return 0;
	if (count > most)
		count = most;
	for (i = 0; i < count; i++) {
		number = (entries - count + i) % XPT_REGION_SAMPLES;
		samples[i].start = __atomic_load_n(&kept[number].start, __ATOMIC_RELAXED);
		samples[i].time = __atomic_load_n(&kept[number].time, __ATOMIC_RELAXED);
	}
	return count;
}

XPT_REGION_API void xpt_region_clear(struct xpt_region *region)
{
	__atomic_store_n(&region->entries, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&region->total, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&region->longest, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&region->unshortest, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&region->unmatched, 0, __ATOMIC_RELAXED);
}

XPT_REGION_API void xpt_region_destroy(struct xpt_region *region)
{
	xpt_region_emit_(region, XPT_REGION_FORGET);
	xpt_region_clear(region);
}

/* Text that is cut where the room ends, but whose whole length is known. */
struct xpt_region_text {
	char *start;
	size_t room, length;
};

static inline void xpt_region_put_(struct xpt_region_text *text, const char *piece)
{
	for (; *piece; piece++, text->length++) {
		if (text->length + 1 < text->room)
			text->start[text->length] = *piece;
	}
}

static inline void xpt_region_put_line_(struct xpt_region_text *text, const struct xpt_region *region)
{
	static const char controls[] = "\nn\rr\tt\\\\";
	struct xpt_region_totals totals;
	const char *name, *known;
	char piece[100];

	xpt_region_put_(text, "[prof] ");
	for (name = region->name ? region->name : ""; *name; name++) {
		known = strchr(controls, *name);
		if (known && (known - controls) % 2 == 0)
			snprintf(piece, sizeof(piece), "\\%c", known[1]);
		else if ((unsigned char)*name < ' ' || *name == 0x7f)
			snprintf(piece, sizeof(piece), "\\x%02x", (unsigned int)(unsigned char)*name);
		else
			snprintf(piece, sizeof(piece), "%c", *name);
		xpt_region_put_(text, piece);
	}
	xpt_region_get(region, &totals);
	snprintf(piece, sizeof(piece), ": total_time: %llu nsec nr_entries: %llu\n",
		 (unsigned long long)totals.total_time, (unsigned long long)totals.entries);
	xpt_region_put_(text, piece);
}

static inline size_t xpt_region_put_all_(char *buffer, size_t size, const struct xpt_region *regions, size_t count)
{
	struct xpt_region_text text = { buffer, size, 0 };
	size_t i;

	for (i = 0; i < count && xpt_region_enabled(); i++)
		xpt_region_put_line_(&text, &regions[i]);
	if (size)
		buffer[text.length < size ? text.length : size - 1] = '\0';
	return text.length;
}

XPT_REGION_API long xpt_regions_print_all_to_buf(char **buffer, size_t size, const struct xpt_region *regions,
						 size_t count)
{
	size_t length;
	char *larger;

	if (*buffer)
		return (long)xpt_region_put_all_(*buffer, size, regions, count);
	/* Regions that are in use grow between the passes. */
	for (size = 0; (length = xpt_region_put_all_(*buffer, size, regions, count)) >= size; size = length + 1) {
		larger = (char *)realloc(*buffer, length + 1);
		if (!larger) {
			free(*buffer);
			*buffer = NULL;
			return -ENOMEM;
		}
		*buffer = larger;
	}
	return (long)length;
}

XPT_REGION_API void xpt_regions_print_all(const struct xpt_region *regions, size_t count)
{
	char *text = NULL;

	if (xpt_regions_print_all_to_buf(&text, 0, regions, count) > 0)
		fputs(text, stderr);
	free(text);
}

XPT_REGION_API void xpt_region_print(const struct xpt_region *region)
{
	xpt_regions_print_all(region, 1);
}

XPT_REGION_API void xpt_regions_init(struct xpt_region *regions, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		xpt_region_init(&regions[i], NULL);
}

XPT_REGION_API void xpt_regions_clear(struct xpt_region *regions, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		xpt_region_clear(&regions[i]);
}

XPT_REGION_API void xpt_regions_destroy(struct xpt_region *regions, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		xpt_region_destroy(&regions[i]);
}

static inline struct xpt_region *xpt_region_find_(struct xpt_region *regions, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (regions[i].name && !strcmp(regions[i].name, name))
			return &regions[i];
	}
	return NULL;
}

XPT_REGION_API int xpt_regions_start_by_name(struct xpt_region *regions, size_t count, const char *name)
{
	struct xpt_region *region = xpt_region_find_(regions, count, name);

	if (!region)
		return -ENOENT;
	xpt_region_start(region);
	return 0;
}

XPT_REGION_API int xpt_regions_stop_by_name(struct xpt_region *regions, size_t count, const char *name)
{
	struct xpt_region *region = xpt_region_find_(regions, count, name);

	if (!region)
		return -ENOENT;
	xpt_region_stop(region);
	return 0;
}
#endif /* XPT_REGION_EXTERN */

#ifdef __cplusplus
}

class xpt_region_scope
{
      public:
	explicit xpt_region_scope(struct xpt_region *scoped) noexcept : region(scoped)
	{
		xpt_region_start(region);
	}
	~xpt_region_scope()
	{
		xpt_region_stop(region);
	}
	xpt_region_scope(const xpt_region_scope &) = delete;
	xpt_region_scope &operator=(const xpt_region_scope &) = delete;

      private:
	struct xpt_region *region;
};
#else
static inline struct xpt_region *xpt_region_scope_begin_(struct xpt_region *region)
{
	xpt_region_start(region);
	return region;
}

static inline void xpt_region_scope_end_(struct xpt_region *const *region)
{
	xpt_region_stop(*region);
}
#endif
#endif
