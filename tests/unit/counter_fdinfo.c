/* SPDX-License-Identifier: BSD-2-Clause */
/* DRM clients: what the kernel prints of each, and the sums over processes that share, pass on and close them. */
#include "counter/fdinfo.h"

#include <errno.h>
#include <fcntl.h>

#include "counter/polled.h"
#include "tests/unit/counter_fixture.h"

/* As kernels print it, with the lines of every file around it. */
#define FILE_LINES "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t284\n"
#define XE                                    \
	FILE_LINES                            \
	"drm-driver:\txe\n"                   \
	"drm-client-id:\t3\n"                 \
	"drm-pdev:\t0000:03:00.0\n"           \
	"drm-total-system:\t0\n"              \
	"drm-resident-system:\t0\n"           \
	"drm-total-vram0:\t24 MiB\n"          \
	"drm-shared-vram0:\t16 MiB\n"         \
	"drm-active-vram0:\t0\n"              \
	"drm-resident-vram0:\t23992 KiB\n"    \
	"drm-cycles-rcs:\t28257900\n"         \
	"drm-total-cycles-rcs:\t7655183225\n" \
	"drm-cycles-vcs:\t0\n"                \
	"drm-total-cycles-vcs:\t7655183225\n" \
	"drm-engine-capacity-vcs:\t2\n"
#define AMDGPU                         \
	FILE_LINES                     \
	"drm-driver:\tamdgpu\n"        \
	"drm-pdev:\t0000:03:00.0\n"    \
	"drm-client-id:\t7\n"          \
	"pasid:\t32772\n"              \
	"drm-memory-vram:\t2048 KiB\n" \
	"drm-memory-gtt: \t64 KiB\n"   \
	"drm-engine-gfx:\t346249 ns\n" \
	"drm-engine-compute:\t12 ns\n" \
	"drm-engine-capacity-compute:\t4\n"

static struct fdinfo parsed;

static int parse(const char *text)
{
	memset(&parsed, 0x5a, sizeof(parsed));
	return fdinfo_parse(text, strlen(text), &parsed);
}

static void expect_value(const char *event, enum fdinfo_kind kind, unsigned long long raw)
{
	for (size_t i = 0; i < parsed.value_count; i++)
		if (strcmp(parsed.values[i].event, event) == 0) {
			cr_expect_eq(parsed.values[i].kind, kind, "%s", event);
			cr_expect_eq(parsed.values[i].raw, raw, "%s: %llu", event,
				     (unsigned long long)parsed.values[i].raw);
			return;
		}
	cr_expect(false, "%s is missing", event);
}

Test(counter_fdinfo, xe)
{
	cr_assert_eq(parse(XE), 0);
	cr_expect_str_eq(parsed.driver, "xe");
	cr_expect_str_eq(parsed.device, "0000:03:00.0");
	cr_expect_eq(parsed.client, 3);
	cr_expect_eq(parsed.value_count, 4);
	expect_value("cycles-rcs", FDINFO_CYCLES, 28257900);
	expect_value("cycles-vcs", FDINFO_CYCLES, 0);
	expect_value("memory-system", FDINFO_MEMORY, 0);
	expect_value("memory-vram0", FDINFO_MEMORY, 23992ull << 10);
}

Test(counter_fdinfo, amdgpu)
{
	cr_assert_eq(parse(AMDGPU), 0);
	cr_expect_eq(parsed.client, 7);
	cr_expect_eq(parsed.value_count, 4);
	expect_value("memory-vram", FDINFO_MEMORY, 2048 << 10);
	expect_value("memory-gtt", FDINFO_MEMORY, 64 << 10);
	expect_value("engine-gfx", FDINFO_ENGINE, 346249);
	expect_value("engine-compute", FDINFO_ENGINE, 12);
}

/* The best line for memory counts wherever it stands. */
Test(counter_fdinfo, which_memory)
{
	cr_assert_eq(parse("drm-driver: d\ndrm-client-id: 1\n"
			   "drm-resident-a: 1\ndrm-memory-a: 2\ndrm-total-a: 3\n"
			   "drm-total-b: 3\ndrm-memory-b: 2\n"
			   "drm-total-c: 3\n"
			   "drm-total-memory: 5 GiB\ndrm-resident-memory: 4 GiB\n"),
		     0);
	cr_expect_eq(parsed.value_count, 4);
	expect_value("memory-a", FDINFO_MEMORY, 1);
	expect_value("memory-b", FDINFO_MEMORY, 2);
	expect_value("memory-c", FDINFO_MEMORY, 3);
	expect_value("memory-memory", FDINFO_MEMORY, 4ull << 30);
}

Test(counter_fdinfo, not_a_client)
{
	cr_expect_eq(parse(FILE_LINES), -EINVAL);
	cr_expect_eq(parse(""), -EINVAL);
	cr_expect_eq(parse("drm-driver:\txe\ndrm-engine-x: 1 ns\n"), -EINVAL);
	cr_expect_eq(parse("drm-client-id:\t1\n"), -EINVAL);
	cr_expect_eq(parse("drm-driver:\ndrm-client-id:\t1\n"), -EINVAL);
	cr_expect_eq(parse("drm-driver: x\ndrm-client-id: one\n"), -EINVAL);
	cr_expect_eq(parse("drm-driver: x\ndrm-client-id: 1 2\n"), -EINVAL);
	cr_expect_eq(parse("drm-driver: x\ndrm-client-id: -1\n"), -EINVAL);
	cr_expect_eq(parse("drm-driver: x\ndrm-client-id: 18446744073709551616\n"), -EINVAL);
	cr_expect_eq(parse(" drm-driver: x\ndrm-client-id: 1\n"), -EINVAL);
	cr_expect_eq(parse("drm-driver: x\ndrm-client-id: 18446744073709551615"), 0);
	cr_expect_str_eq(parsed.device, "");
	cr_expect_eq(parsed.value_count, 0);
}

/* Every one of these lines is passed over, and the one behind it is read. */
Test(counter_fdinfo, lines_without_sense)
{
	static const char *const lines[] = {
		"drm-engine-x: 1",
		"drm-engine-x: 1 us",
		"drm-engine-x: ns",
		"drm-engine-x: -1 ns",
		"drm-engine-x: 1.5 ns",
		"drm-engine-x: 0x10 ns",
		"drm-engine-x: 18446744073709551616 ns",
		"drm-engine-x: 99999999999999999999999999 ns",
		"drm-engine-: 1 ns",
		"drm-engine-a/b: 1 ns",
		"drm-engine-a,b: 1 ns",
		"drm-engine-a b: 1 ns",
		"drm-engine-\x1b[2J: 1 ns",
		"drm-engine-x 1 ns",
		"drm-engine-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: 1 ns",
		"drm-cycles-x: 1 ns",
		"drm-memory-x: 1 KB",
		"drm-memory-x: 18014398509481984 KiB",
		"drm-memory-x: 17592186044416 MiB",
		"drm-engine",
		"drm-",
		":",
		"",
		"drm-maxfreq-x: 1000 Hz",
		"drm-shared-x: 1",
		"xdrm-engine-x: 1 ns",
	};
	char text[512];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "drm-driver: d\ndrm-client-id: 1\n%s\ndrm-engine-good: 9 ns\n", lines[i]);
		cr_assert_eq(parse(text), 0, "%s", lines[i]);
		cr_expect_eq(parsed.value_count, 1, "%s", lines[i]);
		expect_value("engine-good", FDINFO_ENGINE, 9);
	}
	cr_assert_eq(parse("drm-driver: d\ndrm-client-id: 1\ndrm-memory-x: 18014398509481983 KiB\n"), 0);
	expect_value("memory-x", FDINFO_MEMORY, 18014398509481983ull << 10);
}

/* Any cut of a text is read without reading beyond it, and more values than there is room for are left out. */
Test(counter_fdinfo, cuts_and_floods)
{
	char text[8192] = "drm-driver: d\ndrm-client-id: 1\n";

	for (size_t i = 0; i <= strlen(XE); i++) {
		char *copy = malloc(i ? i : 1);

		memcpy(copy, XE, i);
		cr_expect_leq(fdinfo_parse(copy, i, &parsed), 0);
		free(copy);
	}
	for (int i = 0; i < 200; i++)
		sprintf(text + strlen(text), "drm-engine-e%d: %d ns\n", i, i);
	cr_assert_eq(parse(text), 0);
	cr_expect_eq(parsed.value_count, FDINFO_VALUES_MAX);
	expect_value("engine-e63", FDINFO_ENGINE, 63);
}

Test(counter_fdinfo, names_of_events)
{
	enum fdinfo_kind kind;

	cr_expect(fdinfo_event_kind("engine-render", &kind) && kind == FDINFO_ENGINE);
	cr_expect(fdinfo_event_kind("cycles-rcs", &kind) && kind == FDINFO_CYCLES);
	cr_expect(fdinfo_event_kind("memory-vram0", &kind) && kind == FDINFO_MEMORY);
	cr_expect_not(fdinfo_event_kind("engine-", &kind));
	cr_expect_not(fdinfo_event_kind("engine", &kind));
	cr_expect_not(fdinfo_event_kind("", &kind));
	cr_expect_not(fdinfo_event_kind("engine-a/b", &kind));
	cr_expect_not(fdinfo_event_kind("frequency-x", &kind));
	cr_expect_not(
		fdinfo_event_kind("engine-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
				  &kind));
}

/* ---- processes ---- */

static struct nodes nodes;
static struct counter_place place;
static char said[1024];

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%d %s\n", level, text);
}

static const struct log log_kept = { keep, NULL, XPT_LOG_DEBUG };

/* A machine with an i915 and a platform device, and an empty proc. */
static void prepare(void)
{
	fixture_open();
	nvml_use(in_fixture("no-library.so"));
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD128", "i915");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "card0", "i915");
	fixture_device("platform/fdab0000.npu", "accel", "accel0", "rocket");
	place = fixture_place(&nodes, 2);
	place.log = &log_kept;
}

static void finish(void)
{
	nodes_free(&nodes);
	fixture_close();
}

TestSuite(counter_fdinfo_processes, .init = prepare, .fini = finish);

static void put_text(int pid, int descriptor, const char *to, const char *text)
{
	char path[64], link[64];

	snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, descriptor);
	fixture_file(path, text);
	snprintf(link, sizeof(link), "proc/%d/fd/%d", pid, descriptor);
	unlink(in_fixture(link));
	fixture_link(link, to);
}

/* A client of the i915 that has worked for so long. */
static const char *client_text(int client, unsigned long long render)
{
	static char text[512];

	snprintf(text, sizeof(text),
		 FILE_LINES "drm-driver:\ti915\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t%d\n"
			    "drm-resident-system0:\t%d KiB\ndrm-engine-render:\t%llu ns\n",
		 client, client, render);
	return text;
}

static void put(int pid, int descriptor, int client, unsigned long long render)
{
	put_text(pid, descriptor, "/dev/dri/renderD128", client_text(client, render));
}

static void take(int pid, int descriptor)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, descriptor);
	fixture_remove(path);
	snprintf(path, sizeof(path), "proc/%d/fd/%d", pid, descriptor);
	fixture_remove(path);
}

static void expect_list(const char *wanted)
{
	struct listed listed = { "", 0 };

	cr_expect_eq(polled_list(&place, listed_add, &listed), 0);
	cr_expect_str_eq(listed.text, wanted);
}

Test(counter_fdinfo_processes, list)
{
	expect_list("");
	put(100, 5, 1, 10);
	put_text(101, 3, "/dev/dri/card0", AMDGPU);
	expect_list("fdinfo/engine-compute s 1e-09 grows\n"
		    "fdinfo/engine-gfx s 1e-09 grows\n"
		    "fdinfo/engine-render s 1e-09 grows\n"
		    "fdinfo/memory-gtt B 1 level\n"
		    "fdinfo/memory-system0 B 1 level\n"
		    "fdinfo/memory-vram B 1 level\n");
	place.pid = 100;
	expect_list("fdinfo/engine-render s 1e-09 grows\n"
		    "fdinfo/memory-system0 B 1 level\n");
	place.pid = 102;
	expect_list("");
	cr_expect_str_eq(said, "");
}

/* However many descriptors and processes have a client, it counts once. */
Test(counter_fdinfo_processes, once_a_client)
{
	struct polled *render, *memory;

	put(100, 5, 1, 10);
	put(100, 6, 1, 10);
	put(200, 3, 1, 10);
	put(200, 4, 2, 500);
	render = must_open(&place, "fdinfo", "engine-render");
	memory = must_open(&place, "fdinfo", "memory-system0");
	cr_expect_eq(must_read(render), 510);
	cr_expect_eq(must_read(memory), (1 + 2) << 10);
	put(100, 5, 1, 11);
	put(100, 6, 1, 11);
	put(200, 3, 1, 11);
	cr_expect_eq(must_read(render), 511);
	polled_close(render);
	polled_close(memory);
	cr_expect_str_eq(said, "");
}

/* What a client has counted stays when it closes; what it held does not. */
Test(counter_fdinfo_processes, clients_come_and_go)
{
	struct polled *render, *memory;

	put(100, 5, 1, 1000);
	put(200, 5, 2, 30);
	render = must_open(&place, "fdinfo", "engine-render");
	memory = must_open(&place, "fdinfo", "memory-system0");
	cr_expect_eq(must_read(render), 1030);
	take(100, 5);
	cr_expect_eq(must_read(render), 1030);
	cr_expect_eq(must_read(memory), 2 << 10);
	put(200, 5, 2, 40);
	cr_expect_eq(must_read(render), 1040);
	put(300, 9, 3, 5);
	cr_expect_eq(must_read(render), 1045);
	fixture_remove("proc/200");
	fixture_remove("proc/300");
	cr_expect_eq(must_read(render), 1045);
	cr_expect_eq(must_read(memory), 0);
	/* The first one was only on its way to another process. */
	put(400, 1, 1, 1001);
	cr_expect_eq(must_read(render), 1046);
	polled_close(render);
	polled_close(memory);
}

/* Of one client, and so the sum does not take from one what another has added. */
Test(counter_fdinfo_processes, a_client_falls_back)
{
	struct polled *render;

	put(100, 5, 1, 1000);
	put(100, 6, 2, 1000);
	render = must_open(&place, "fdinfo", "engine-render");
	cr_expect_eq(must_read(render), 2000);
	put(100, 5, 1, 400);
	put(100, 6, 2, 1500);
	cr_expect_eq(must_read(render), 2500);
	put(100, 5, 1, 1100);
	cr_expect_eq(must_read(render), 2600);
	polled_close(render);
}

/* Numbers of clients are their driver's and device's own. */
Test(counter_fdinfo_processes, same_number_elsewhere)
{
	struct polled *engine;

	put_text(100, 1, "/dev/dri/renderD128",
		 "drm-driver: a\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 1\ndrm-engine-x: 1 ns\n");
	put_text(100, 2, "/dev/dri/renderD129",
		 "drm-driver: a\ndrm-pdev: 0000:04:00.0\ndrm-client-id: 1\ndrm-engine-x: 10 ns\n");
	put_text(100, 3, "/dev/dri/renderD130", "drm-driver: a\ndrm-client-id: 1\ndrm-engine-x: 100 ns\n");
	put_text(100, 4, "/dev/dri/renderD130", "drm-driver: b\ndrm-client-id: 1\ndrm-engine-x: 1000 ns\n");
	engine = must_open(&place, "fdinfo", "engine-x");
	cr_expect_eq(must_read(engine), 1111);
	polled_close(engine);
}

Test(counter_fdinfo_processes, one_device)
{
	struct polled *engine;

	put_text(100, 1, "/dev/dri/card0",
		 "drm-driver: i915\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 1\ndrm-engine-x: 1 ns\n");
	put_text(100, 2, "/dev/dri/renderD129",
		 "drm-driver: i915\ndrm-pdev: 0000:04:00.0\ndrm-client-id: 2\ndrm-engine-x: 10 ns\n");
	put_text(100, 3, "/dev/accel/accel0", "drm-driver: rocket\ndrm-client-id: 3\ndrm-engine-x: 100 ns\n");
	put_text(100, 4, "/dev/accel/accel7", "drm-driver: rocket\ndrm-client-id: 4\ndrm-engine-x: 1000 ns\n");
	put_text(100, 5, "/dev/accel/../dri/card0", "drm-driver: rocket\ndrm-client-id: 5\ndrm-engine-x: 5000 ns\n");
	place.node = &nodes.items[0];
	cr_assert_str_eq(place.node->address, "0000:03:00.0");
	engine = must_open(&place, "fdinfo", "engine-x");
	cr_expect_eq(must_read(engine), 1);
	polled_close(engine);
	place.node = &nodes.items[1];
	cr_assert_str_eq(place.node->address, "fdab0000.npu");
	engine = must_open(&place, "fdinfo", "engine-x");
	cr_expect_eq(must_read(engine), 100);
	polled_close(engine);
	place.node = NULL;
	engine = must_open(&place, "fdinfo", "engine-x");
	cr_expect_eq(must_read(engine), 1111);
	polled_close(engine);
}

Test(counter_fdinfo_processes, one_process)
{
	struct polled *engine;
	__u64 raw;

	put(100, 5, 1, 7);
	put(200, 5, 2, 70);
	place.pid = 200;
	engine = must_open(&place, "fdinfo", "engine-render");
	cr_expect_eq(must_read(engine), 70);
	put(200, 6, 3, 1);
	cr_expect_eq(must_read(engine), 71);
	take(200, 5);
	cr_expect_eq(must_read(engine), 71);
	fixture_remove("proc/200");
	cr_expect_eq(polled_read(engine, &raw), -ENODEV);
	/* Its number again is not the same process. */
	put(200, 5, 2, 70);
	cr_expect_eq(polled_read(engine, &raw), -ENODEV);
	polled_close(engine);
	cr_expect_str_eq(said, "");
	place.pid = 300;
	cr_expect_eq(open_error(&place, "fdinfo", "engine-render"), -ENODEV);
	cr_expect(strstr(said, "process 300 does not exist"), "%s", said);
}

/* Two counters of a process that is gone: both say so, though one walk answers them. */
Test(counter_fdinfo_processes, gone_for_all)
{
	struct polled *engine, *memory;
	__u64 raw;

	put(100, 5, 1, 7);
	place.pid = 100;
	engine = must_open(&place, "fdinfo", "engine-render");
	memory = must_open(&place, "fdinfo", "memory-system0");
	fixture_remove("proc/100");
	cr_expect_eq(polled_read(engine, &raw), -ENODEV);
	cr_expect_eq(polled_read(memory, &raw), -ENODEV);
	polled_close(engine);
	polled_close(memory);
}

/* What nobody has yet counts from zero and is said; what cannot be, or has no device, is not there. */
Test(counter_fdinfo_processes, before_the_first_client)
{
	struct polled *engine;

	engine = must_open(&place, "fdinfo", "engine-render");
	cr_expect(strstr(said, "fdinfo/engine-render/: no DRM client has it yet"), "%s", said);
	cr_expect_eq(must_read(engine), 0);
	put(100, 5, 1, 12);
	cr_expect_eq(must_read(engine), 12);
	polled_close(engine);
	cr_expect_eq(open_error(&place, "fdinfo", "busy"), -ENOENT);
	cr_expect_eq(open_error(&place, "fdinfo", "engine-"), -ENOENT);
	cr_expect_eq(open_error(&place, "i915", "engine-render"), -ENOENT);
	nodes_free(&nodes);
	place.nodes = nodes;
	cr_expect_eq(open_error(&place, "fdinfo", "engine-render"), -ENOENT);
}

/* Only links to nodes are followed up: a pipe in the place of another file's fdinfo would never end. */
Test(counter_fdinfo_processes, other_files_are_not_opened)
{
	static const char *const others[] = { "/dev/nvidia0", "/dev/drive", "/tmp/dev/dri/renderD128",
					      "/dev/dri",     "/dev/null",  "/dev/accelerated/accel0" };
	struct polled *engine;

	for (int i = 0; i < (int)(sizeof(others) / sizeof(others[0])); i++)
		put_text(100, i, others[i], "drm-driver: d\ndrm-client-id: 1\ndrm-engine-render: 1000 ns\n");
	put(100, 50, 1, 5);
	put_text(100, 51, "/dev/dri/renderD128", "");
	fixture_remove("proc/100/fdinfo/51");
	cr_assert_eq(mkfifo(in_fixture("proc/100/fdinfo/51"), 0600), 0);
	put_text(100, 52, "/dev/dri/renderD128", "");
	fixture_remove("proc/100/fdinfo/52");
	put_text(100, 53, "/dev/dri/renderD128", "");
	fixture_remove("proc/100/fdinfo/53");
	cr_assert_eq(mkdir(in_fixture("proc/100/fdinfo/53"), 0700), 0);
	fixture_file("proc/100/fd/54", "no link");
	fixture_link("proc/100/fd/x55", "/dev/dri/renderD128");
	fixture_file("proc/100/fdinfo/x55", "drm-driver: d\ndrm-client-id: 1\ndrm-engine-render: 1000 ns\n");
	fixture_file("proc/200/status", "a process without descriptors\n");
	fixture_file("proc/300", "no folder\n");
	fixture_file("proc/self/fd/1", "no number\n");
	engine = must_open(&place, "fdinfo", "engine-render");
	cr_expect_eq(must_read(engine), 5);
	polled_close(engine);
}

/* A text longer than is read is cut: what stands in front counts. */
Test(counter_fdinfo_processes, endless_text)
{
	char *text = malloc(1 << 20);
	struct polled *engine;

	strcpy(text, "drm-driver: d\ndrm-client-id: 1\ndrm-engine-render: 5 ns\n");
	memset(text + strlen(text), 'x', (1 << 20) - strlen(text));
	text[(1 << 20) - 1] = '\0';
	put_text(100, 1, "/dev/dri/renderD128", text);
	free(text);
	engine = must_open(&place, "fdinfo", "engine-render");
	cr_expect_eq(must_read(engine), 5);
	polled_close(engine);
}

/* Counters of one place may be opened, read and closed in any order. */
Test(counter_fdinfo_processes, counters_share_a_walk)
{
	struct polled *render, *memory, *again;
	int others_read = 0;

	put(100, 5, 1, 1);
	render = must_open(&place, "fdinfo", "engine-render");
	memory = must_open(&place, "fdinfo", "memory-system0");
	for (int i = 2; i < 50; i++) {
		put(100, 5, i, 1);
		cr_expect_eq(must_read(i % 2 ? render : memory), i % 2 ? (unsigned long long)i : (unsigned)i << 10);
		/* The other one is answered by the same walk, or by another. */
		others_read += must_read(i % 2 ? memory : render) == (i % 2 ? (unsigned)i << 10 : (unsigned)i);
	}
	cr_expect_eq(others_read, 48);
	polled_close(render);
	again = must_open(&place, "fdinfo", "engine-render");
	polled_close(memory);
	cr_expect_eq(must_read(again), 49);
	polled_close(again);
	/* With the last counter everything is forgotten. */
	again = must_open(&place, "fdinfo", "engine-render");
	cr_expect_eq(must_read(again), 1);
	polled_close(again);
}

/* Sums are exact with many more clients, one after the other, than are remembered. */
Test(counter_fdinfo_processes, many_short_clients)
{
	enum { ROUNDS = 50, CLIENTS = 100 };
	unsigned long long sum = 0;
	struct polled *engine;

	engine = must_open(&place, "fdinfo", "engine-render");
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CLIENTS; i++) {
			char path[64];

			snprintf(path, sizeof(path), "proc/100/fdinfo/%d", i);
			if (!round)
				put(100, i, i, (unsigned long long)(i + 1));
			else
				fixture_file(path, client_text(round * CLIENTS + i, (unsigned long long)(i + 1)));
			sum += (unsigned long long)(i + 1);
		}
		cr_expect_eq(must_read(engine), sum, "round %d", round);
	}
	polled_close(engine);
}

/* The same name again: the folder looks as before, as with a kernel that does not tell the number of files. */
static void exchange(int pid, int descriptor, const char *to, const char *text)
{
	char path[64], link[64];

	snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, descriptor);
	fixture_file(path, text);
	snprintf(link, sizeof(link), "proc/%d/fd/%d", pid, descriptor);
	fixture_link("proc/new", to);
	cr_assert_eq(rename(in_fixture("proc/new"), in_fixture(link)), 0);
}

/*
 * With more open files than a walk looks at, processes without a node take turns. Those that have one, or are new, are seen
 * by every walk.
 */
Test(counter_fdinfo_processes, more_files_than_a_walk_looks_at)
{
	enum { PROCESSES = 4, FILES = 2500 };
	unsigned long long sum;
	struct polled *engine;
	char path[64];
	int reads = 1;

	put(50, 1, 1000, 1);
	for (int i = 0; i < PROCESSES * FILES; i++) {
		snprintf(path, sizeof(path), "proc/%d/fd/%d", 100 + i / FILES, i % FILES);
		fixture_link(path, "/dev/null");
	}
	engine = must_open(&place, "fdinfo", "engine-render");
	exchange(100 + PROCESSES - 1, 7, "/dev/dri/renderD128", client_text(1, 1000));
	exchange(50, 1, "/dev/dri/renderD128", client_text(1000, 2));
	put(90, 3, 2000, 50);
	cr_expect_eq(must_read(engine), 52, "the limit must have come into it");
	do
		sum = must_read(engine);
	while (sum < 1000 && ++reads <= PROCESSES);
	cr_expect_eq(sum, 1052);
	/* From now on it has a node, and every walk sees it. */
	exchange(100 + PROCESSES - 1, 7, "/dev/dri/renderD128", client_text(1, 2000));
	cr_expect_eq(must_read(engine), 2052);
	exchange(100 + PROCESSES - 1, 7, "/dev/dri/renderD128", client_text(1, 3000));
	cr_expect_eq(must_read(engine), 3052);
	polled_close(engine);
}

/* The kernel's own proc: no text of fdinfo here, yet every path is walked. */
Test(counter_fdinfo_processes, this_machine)
{
	struct listed listed = { "", 0 };

	place.proc = "/proc";
	place.pid = getpid();
	cr_expect_eq(polled_list(&place, listed_add, &listed), 0);
	cr_expect_eq(listed.calls, 0);
	place.pid = 0;
	cr_expect_eq(polled_list(&place, listed_add, &listed), 0);
}
