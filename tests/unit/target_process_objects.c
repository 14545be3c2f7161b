/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process/objects.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/core/text.h"
#include "target_support.h"

TestSuite(target_process_objects, .fini = support_cleanup);

/* As a C++ compiler lays them out; that it does is a test of its own. */
struct string {
	const char *text;
	size_t length;
	union {
		char local[16];
		size_t capacity;
	};
};

struct node {
	size_t index;
	struct string name, type;
	char between[40];
	struct string provider;
};

struct info {
	void *other;
	struct node *node;
};

struct object {
	const void *table;
	struct info *info;
	long own;
};

static struct node_layout layout = { .through = { offsetof(struct object, info), offsetof(struct info, node) },
				     .through_count = 2,
				     .index = offsetof(struct node, index),
				     .name = offsetof(struct node, name),
				     .type = offsetof(struct node, type),
				     .provider = offsetof(struct node, provider),
				     .providers = "*ExecutionProvider" };

static const struct operators_spec spec = { .nodes = &layout, .node_count = 1 };

static const void *const table[4];
static struct node node;
static struct info info;
static struct object object;
static char memory[3][4096] __attribute__((aligned(16)));

/* A string that lies elsewhere has its place in memory. */
static void set(struct string *string, const char *text, unsigned int place)
{
	*string = (struct string){ .text = string->local, .length = strlen(text) };
	if (string->length >= sizeof(string->local)) {
		string->text = memory[place];
		string->capacity = string->length + 5;
	}
	memset(memory[place], 'X', sizeof(memory[place]));
	strcpy((char *)string->text, text);
}

static void fresh(const char *name, const char *type, const char *provider)
{
	node.index = 7;
	set(&node.name, name, 0);
	set(&node.type, type, 1);
	set(&node.provider, provider, 2);
	info = (struct info){ .node = &node };
	object = (struct object){ .table = table, .info = &info };
}

static int read_object(struct operator_node *result)
{
	memset(result, 'X', sizeof(*result));
	return object_node_read(&spec, getpid(), (uintptr_t)&object, (uintptr_t)table, result);
}

static int result_now(void)
{
	struct operator_node result;
	int error = read_object(&result);

	if (error) /* untouched */
		for (size_t i = 0; i < sizeof(result); i++)
			cr_assert_eq(((const char *)&result)[i], 'X');
	return error;
}

Test(target_process_objects, reads)
{
	static const struct {
		const char *name, *type, *provider;
	} cases[] = {
		{ "gemm", "Gemm", "CPUExecutionProvider" },
		{ "", "Relu", "CPUExecutionProvider" },
		{ "fifteen_bytes__", "sixteen_bytes_xx", "VitisAIExecutionProvider" },
		{ "/model/layers.0/self_attn/q_proj/MatMul", "FusedMatMul", "CUDAExecutionProvider" },
		{ "\xc3\xa9t\xc3\xa9 \xe4\xb8\xad \"quoted\" \xf0\x9f\x98\x80", "_a", "XExecutionProvider" },
		{ "x", "TRTKernel_graph_torch-jit-export_0.1:2", "TensorrtExecutionProvider" },
	};
	struct operator_node result;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fresh(cases[i].name, cases[i].type, cases[i].provider);
		cr_assert_eq(read_object(&result), 0, "case %zu", i);
		cr_expect_eq(result.index, 7);
		cr_expect_str_eq(result.name, cases[i].name);
		cr_expect_str_eq(result.type, cases[i].type);
		cr_expect_str_eq(result.provider, cases[i].provider);
	}
}

Test(target_process_objects, long_names_are_cut_between_characters)
{
	char name[2 * OPERATOR_NODE_NAME_MAX + 1];
	struct operator_node result;

	for (size_t length = OPERATOR_NODE_NAME_MAX - 2; length < OPERATOR_NODE_NAME_MAX + 6; length++) {
		size_t kept;

		memset(name, 'n', length);
		for (size_t i = OPERATOR_NODE_NAME_MAX - 11; i + 1 < length; i += 2)
			memcpy(name + i, "\xc3\xa9", 2);
		name[length] = '\0';
		fresh(name, "Gemm", "CPUExecutionProvider");
		cr_assert_eq(read_object(&result), 0, "%zu", length);
		kept = length <= OPERATOR_NODE_NAME_MAX ? length : OPERATOR_NODE_NAME_MAX - 1;
		cr_expect_eq(strlen(result.name), kept, "%zu of %zu", strlen(result.name), length);
		cr_expect_eq(memcmp(result.name, name, kept), 0);
	}
}

static const char *repeated(char letter, size_t count)
{
	static char text[4000];

	memset(text, letter, count);
	text[count] = '\0';
	return text;
}

#define LONG "a name that does not lie in its string"
#define BROKEN(error, statement)                                                       \
	do {                                                                           \
		fresh(LONG, "Gemm", "CPUExecutionProvider");                           \
		statement;                                                             \
		cr_expect_eq(result_now(), error, "%d: %s", result_now(), #statement); \
	} while (0)

Test(target_process_objects, what_is_no_node)
{
	struct operator_node result;

	BROKEN(0, (void)0);
	/* the way */
	BROKEN(-ESTALE, object.table = table + 1);
	BROKEN(-ESTALE, object.table = NULL);
	BROKEN(-EPROTO, object.info = NULL);
	BROKEN(-EPROTO, object.info = (void *)((char *)&info + 4));
	BROKEN(-EPROTO, object.info = (void *)(uintptr_t)0x8000000000000000);
	BROKEN(-EPROTO, info.node = NULL);
	BROKEN(-EPROTO, info.node = (void *)((char *)&node + 1));
	BROKEN(-EFAULT, info.node = (void *)(uintptr_t)0x00ffffffffffff00);
	BROKEN(-EFAULT, object.info = (void *)(uintptr_t)0x10);
	/* the index */
	BROKEN(0, node.index = INT_MAX);
	BROKEN(-EPROTO, node.index = INT_MAX + 1ul);
	BROKEN(-EPROTO, node.index = SIZE_MAX);
	/* a string elsewhere */
	BROKEN(-EPROTO, node.name.text = NULL);
	BROKEN(-EPROTO, node.name.text++);
	BROKEN(-EFAULT, node.name.text = (void *)(uintptr_t)0x10);
	BROKEN(-EPROTO, node.name.length--);
	BROKEN(-EPROTO, node.name.length++);
	BROKEN(0, node.name.capacity = node.name.length);
	BROKEN(-EPROTO, node.name.capacity = node.name.length - 1);
	BROKEN(-EPROTO, (node.name.length = 3, node.name.capacity = 15, memory[0][3] = '\0'));
	BROKEN(0, (node.name.length = 3, node.name.capacity = 16, memory[0][3] = '\0'));
	BROKEN(-EPROTO, (node.name.length = (1ul << 20) + 1, node.name.capacity = SIZE_MAX));
	BROKEN(-EPROTO, node.name.length = node.name.capacity = SIZE_MAX);
	/* a string in itself */
	BROKEN(-EPROTO, node.type.length = 16);
	BROKEN(-EPROTO, node.type.length = SIZE_MAX);
	BROKEN(-EPROTO, node.type.length = 3);
	BROKEN(-EPROTO, node.type.length = 5); /* as long, but a terminator is part of it */
	BROKEN(-EPROTO, node.type.text = (char *)&node.type);
	BROKEN(-EPROTO, node.type.text = node.name.local);
	/* texts */
	BROKEN(-EPROTO, memory[0][5] = '\0');
	BROKEN(-EPROTO, memory[0][5] = '\n');
	BROKEN(-EPROTO, memory[0][5] = '\x7f');
	BROKEN(-EPROTO, memory[0][5] = '\xc3');
	BROKEN(-EPROTO, memcpy(memory[0], "\xc2\x9b", 2)); /* a control character beyond ASCII */
	BROKEN(0, memcpy(memory[0], "\xc2\xa0", 2));
	BROKEN(-EPROTO, memcpy(memory[0], "\xed\xa0\x80", 3));
	BROKEN(-EPROTO, memory[0][strlen(LONG) - 1] = '\xc3');
	BROKEN(-EPROTO, set(&node.type, "", 1));
	BROKEN(-EPROTO, set(&node.type, "1Gemm", 1));
	BROKEN(-EPROTO, set(&node.type, "Ge mm", 1));
	BROKEN(-EPROTO, set(&node.type, "G\xc3\xa9mm", 1));
	BROKEN(0, set(&node.type, repeated('a', OPERATOR_NODE_TYPE_MAX), 1));
	BROKEN(-EPROTO, set(&node.type, repeated('a', OPERATOR_NODE_TYPE_MAX + 1), 1));
	BROKEN(-EPROTO, set(&node.provider, "CPU", 2));
	BROKEN(-EPROTO, set(&node.provider, "CPUExecutionProvider2", 2));
	BROKEN(-EPROTO, set(&node.provider, "A CPUExecutionProvider", 2));
	BROKEN(-EPROTO, set(&node.provider, repeated('a', OPERATOR_NODE_PROVIDER_MAX + 1), 2));

	BROKEN(-EPROTO, set(&node.provider, "", 2));
	fresh("a", "Gemm", "AExecutionProvider");
	cr_expect_eq(object_node_read(&spec, getpid(), (uintptr_t)&object + 4, (uintptr_t)table, &result), -ESTALE);
	cr_expect_eq(object_node_read(&spec, getpid(), 0, (uintptr_t)table, &result), -ESTALE);
	cr_expect_eq(object_node_read(&spec, getpid(), 8, (uintptr_t)table, &result), -EFAULT);
}

/* A page and nothing behind it. */
static char *last_page(size_t size)
{
	char *pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(pages, MAP_FAILED);
	cr_assert_eq(munmap(pages + size, size), 0);
	return pages;
}

Test(target_process_objects, nothing_is_read_beyond_what_is_there)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *page = last_page(size);
	struct node *at_end = (struct node *)(page + size - sizeof(node));

	/* the text ends with the page, its terminator included */
	fresh(LONG, "Gemm", "CPUExecutionProvider");
	memset(page, 'n', size - 1);
	node.name.text = page + size - 24;
	node.name.length = 23;
	cr_expect_eq(result_now(), 0);
	node.name.length = node.name.capacity = 24;
	cr_expect_eq(result_now(), -EFAULT);
	node.name.length = node.name.capacity = 4000;
	cr_expect_eq(result_now(), -EFAULT);

	/* so does the node, or it does not */
	fresh("a", "Gemm", "AExecutionProvider");
	*at_end = node;
	at_end->name.text = at_end->name.local;
	at_end->type.text = at_end->type.local;
	info.node = at_end;
	cr_expect_eq(result_now(), 0);
	info.node = (struct node *)((char *)at_end + 8);
	cr_expect_eq(result_now(), -EFAULT);
}

Test(target_process_objects, other_processes)
{
	struct operator_node result;
	pid_t child;

	fresh(LONG, "Gemm", "CPUExecutionProvider");
	child = fork();
	cr_assert_geq(child, 0);
	if (!child)
		for (;;)
			pause();
	node.index = 8; /* here, not there */
	cr_expect_eq(object_node_read(&spec, child, (uintptr_t)&object, (uintptr_t)table, &result), 0);
	cr_expect_eq(result.index, 7);
	cr_expect_str_eq(result.name, LONG);
	cr_assert_eq(kill(child, SIGKILL), 0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_expect_eq(object_node_read(&spec, child, (uintptr_t)&object, (uintptr_t)table, &result), -ESRCH);
}

static bool stopped;

static void *change(void *argument)
{
	(void)argument;
	for (size_t i = 0; !__atomic_load_n(&stopped, __ATOMIC_RELAXED); i++)
		__atomic_store_n(&node.index, i & 1, __ATOMIC_RELAXED);
	return NULL;
}

Test(target_process_objects, what_changes_is_said, .timeout = 60)
{
	unsigned int changed = 0;
	pthread_t thread;

	fresh(LONG, "Gemm", "CPUExecutionProvider");
	cr_assert_eq(pthread_create(&thread, NULL, change, NULL), 0);
	while (!changed) {
		int error = result_now();

		cr_assert(!error || error == -EAGAIN, "%d", error);
		changed += error == -EAGAIN;
	}
	__atomic_store_n(&stopped, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static bool is_shown_safely(const char *text)
{
	size_t left = strlen(text);
	__u32 character;

	for (size_t bytes; left; text += bytes, left -= bytes) {
		bytes = text_decode(text, left, &character);
		if (!bytes || character < ' ' || (character >= 0x7f && character < 0xa0))
			return false;
	}
	return true;
}

/* Whatever stands there: an error, or a node that is fit to be shown. */
Test(target_process_objects, anything)
{
	unsigned long seed = 20,
		      values[] = { 0, 1, 8, 15, 16, 17, SIZE_MAX, (size_t)&node, (size_t)memory, (size_t)&info };
	unsigned int accepted = 0, refused = 0;
	struct operator_node result;

	for (unsigned int i = 0; i < 50000; i++) {
		struct {
			void *start;
			size_t words;
		} parts[] = {
			{ &node, sizeof(node) / 8 }, { &object, 2 }, { &info, 2 }, { memory[0], 6 }, { memory[2], 3 }
		};
		size_t part, word, value;

		fresh(LONG, "Gemm", "CPUExecutionProvider");
		for (unsigned int j = 0; j <= i % 3; j++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			part = (seed >> 33) % (sizeof(parts) / sizeof(parts[0]));
			word = (seed >> 36) % parts[part].words;
			value = seed >> 62 ? values[(seed >> 40) % (sizeof(values) / sizeof(values[0]))] :
					     (seed >> 20) * 0x9e3779b97f4a7c15;
			memcpy((char *)parts[part].start + 8 * word, &value, 8);
		}
		if (read_object(&result)) {
			refused++;
			continue;
		}
		accepted++;
		cr_assert(result.index >= 0 && result.index <= INT_MAX);
		cr_assert(memchr(result.name, 0, sizeof(result.name)) && memchr(result.type, 0, sizeof(result.type)) &&
			  memchr(result.provider, 0, sizeof(result.provider)));
		cr_assert(is_shown_safely(result.name) && is_shown_safely(result.type) &&
			  is_shown_safely(result.provider));
		cr_assert_neq(result.type[0], '\0');
	}
	cr_expect_gt(accepted, 1000, "%u", accepted);
	cr_expect_gt(refused, 10000, "%u", refused);
}

/* The strings, pointers and references of a compiler and its library; the object's second base has the table. */
static const char program[] =
	"#include <memory>\n#include <string>\n"
	"struct Node { std::size_t index; std::string name, type, domain; int version = 3; std::string provider; };\n"
	"struct Context { const Node &node; };\n"
	"struct Info { std::unique_ptr<Context> context; const Node &node; };\n"
	"struct Kernel { virtual ~Kernel(); virtual int run() = 0; std::unique_ptr<Info> info; };\n"
	"Kernel::~Kernel() {}\n"
	"struct Other { virtual ~Other(); long field = 1; }; Other::~Other() {}\n"
	"struct Gemm : Other, Kernel { int run() override; }; int Gemm::run() { return 1; }\n"
	"static Node nodes[] = {{0, \"\", \"Relu\", \"\", 1, \"CPUExecutionProvider\"},\n"
	"	{41, \"short\", \"Gemm\", \"ai.onnx\", 1, \"CPUExecutionProvider\"},\n"
	"	{2147483647, std::string(300, 'x'), \"FusedMatMulActivation\", \"\", 1, \"CPUExecutionProvider\"}};\n"
	"static Gemm gemms[3];\n"
	"extern \"C\" void *make(int i) {\n"
	"	gemms[i].info.reset(new Info{std::unique_ptr<Context>(new Context{nodes[i]}), nodes[i]});\n"
	"	nodes[i].name.reserve(i * 400);\n"
	"	return static_cast<Kernel *>(&gemms[i]); }\n"
	"#define OFFSET(f) (int)__builtin_offsetof(Node, f)\n"
	"extern \"C\" { int offsets[] = {OFFSET(index), OFFSET(name), OFFSET(type), OFFSET(provider)}; }\n";

Test(target_process_objects, what_a_compiler_makes)
{
	const char *source = support_path("nodes.cpp"), *path = support_path("nodes.so");
	const char *const types[] = { "Relu", "Gemm", "FusedMatMulActivation" };
	const long indices[] = { 0, 41, INT_MAX };
	struct node_layout made = { .through = { 8, 0, 0 }, .through_count = 3, .providers = "*Provider" };
	const struct operators_spec made_spec = { .nodes = &made, .node_count = 1 };
	struct operator_node result;
	void *library, *(*make)(int);
	const int *offsets;

	support_write(source, program, sizeof(program) - 1);
	support_run("g++ -w -O1 -shared -fPIC -o %s %s", path, source);
	library = dlopen(path, RTLD_NOW);
	cr_assert_not_null(library, "%s", dlerror());
	offsets = dlsym(library, "offsets");
	*(void **)&make = dlsym(library, "make");
	made.index = (unsigned int)offsets[0];
	made.name = (unsigned int)offsets[1];
	made.type = (unsigned int)offsets[2];
	made.provider = (unsigned int)offsets[3];
	for (int i = 0; i < 3; i++) {
		__u64 *kernel = make(i);

		cr_assert_eq(object_node_read(&made_spec, getpid(), (uintptr_t)kernel, *kernel, &result), 0, "%d", i);
		cr_expect_eq(result.index, indices[i]);
		cr_expect_str_eq(result.type, types[i]);
		cr_expect_str_eq(result.name, i == 0 ? "" : i == 1 ? "short" : repeated('x', 300));
		cr_expect_str_eq(result.provider, "CPUExecutionProvider");
	}
}

Test(target_process_objects, first_layout_that_leads_to_a_node)
{
	struct node_layout all[3] = { layout, layout, layout };
	const struct operators_spec several = { .nodes = all, .node_count = 3 };
	struct operator_node result;

	all[0].provider = offsetof(struct node, name);
	all[1].providers = "*OtherProvider";
	fresh("a", "Gemm", "CPUExecutionProvider");
	cr_assert_eq(object_node_read(&several, getpid(), (uintptr_t)&object, (uintptr_t)table, &result), 0);
	cr_expect_str_eq(result.provider, "CPUExecutionProvider");
	all[2].provider = offsetof(struct node, type);
	cr_expect_eq(object_node_read(&several, getpid(), (uintptr_t)&object, (uintptr_t)table, &result), -EPROTO);
}

/* ---- names ---- */

struct counted {
	unsigned long length, capacity;
	int owners, padding;
	char text[40];
};

/* As a session keeps them, in both forms. */
static struct {
	void *table;
	struct string location;
	long numbers[2];
	struct string metadata[5];
	long more[4];
	const char *old[5];
	const char *symbol;
} session;

static struct counted texts[5];

static char *path_patterns[] = { "*.onnx", "*.ort" };
static const struct name_way by_path = { .kind = NAME_FITS,
					 .within = 48,
					 .patterns = path_patterns,
					 .pattern_count = 2 };
static const struct name_way in_row = { .kind = NAME_ROW,
					.within = sizeof(session),
					.rows = { { 5, 1 } },
					.row_count = 1 };

static void fresh_session(const char *path, const char *graph)
{
	static const char *const strings[] = { "producer", NULL, "", "", "ai.onnx" };

	memset(&session, 0, sizeof(session));
	set(&session.location, path, 0);
	for (int i = 0; i < 5; i++)
		set(&session.metadata[i], strings[i] ?: graph, i == 1 ? 1 : 2);
}

static int name_by(const struct name_way *way, char name[OBJECT_NAME_MAX + 1])
{
	memset(name, 'X', OBJECT_NAME_MAX);
	return object_name_read(way, getpid(), (uintptr_t)&session, name);
}

Test(target_process_objects, name_that_fits)
{
	char name[OBJECT_NAME_MAX + 1];

	fresh_session("/models/a model that ranks.onnx", "main_graph");
	cr_assert_eq(name_by(&by_path, name), 0);
	cr_expect_str_eq(name, "/models/a model that ranks.onnx");
	fresh_session("a.ort", "main_graph");
	cr_assert_eq(name_by(&by_path, name), 0);
	cr_expect_str_eq(name, "a.ort");
	fresh_session("a.pt", "main_graph");
	cr_expect_eq(name_by(&by_path, name), -ENOENT, "%s", name);
	fresh_session("a\nb.onnx", "main_graph");
	cr_expect_eq(name_by(&by_path, name), -ENOENT);
	fresh_session("", "main_graph");
	session.location.length = 1ul << 40;
	cr_expect_eq(name_by(&by_path, name), -ENOENT);
}

/* The name of the graph can be none: nothing else that looks like such a row is taken for it. */
Test(target_process_objects, name_in_a_row_that_can_be_none)
{
	static struct {
		struct string metadata[5];
		long more[4];
		struct string others[5];
	} object;
	const struct name_way way = { .kind = NAME_ROW, .within = sizeof(object), .rows = { { 5, 1 } }, .row_count = 1 };
	static const char *const graphs[] = { "a\nb", "\x1b[31m", "\xff", "\xc0\xaf", "\x7f" };
	char name[OBJECT_NAME_MAX + 1], many[OBJECT_NAME_MAX + 5000];

	for (size_t i = 0; i < 5; i++) {
		set(&object.metadata[i], "metadata", 0);
		set(&object.others[i], "other", 0);
	}
	for (size_t i = 0; i <= sizeof(graphs) / sizeof(graphs[0]); i++) {
		if (i < sizeof(graphs) / sizeof(graphs[0])) {
			set(&object.metadata[1], graphs[i], 0);
		} else {
			memset(many, 'L', sizeof(many) - 1);
			many[sizeof(many) - 1] = '\0';
			object.metadata[1] = (struct string){ .text = many,
							      .length = sizeof(many) - 1,
							      .capacity = sizeof(many) };
		}
		cr_expect_eq(object_name_read(&way, getpid(), (uintptr_t)&object, name), -EILSEQ, "%zu: %s", i, name);
	}
	set(&object.metadata[1], "graph", 0);
	cr_assert_eq(object_name_read(&way, getpid(), (uintptr_t)&object, name), 0);
	cr_expect_str_eq(name, "graph");
}

Test(target_process_objects, name_in_a_row)
{
	struct name_way other = in_row;
	char name[OBJECT_NAME_MAX + 1];

	fresh_session("", "main_graph");
	cr_assert_eq(name_by(&in_row, name), 0);
	cr_expect_str_eq(name, "main_graph");
	fresh_session("", "a graph with a name that is longer than fifteen bytes");
	cr_assert_eq(name_by(&in_row, name), 0);
	cr_expect_str_eq(name, "a graph with a name that is longer than fifteen bytes");
	fresh_session("", "");
	cr_expect_eq(name_by(&in_row, name), -ENOENT);
	/* a row that is longer or shorter is something else */
	fresh_session("", "main_graph");
	other.rows[0].count = 4;
	cr_expect_eq(name_by(&other, name), -ENOENT);
	other.rows[0].count = 6;
	cr_expect_eq(name_by(&other, name), -ENOENT);
	/* and so is one without the name */
	fresh_session("", "main_graph");
	session.metadata[0].length = session.metadata[2].length = 1ul << 40;
	other.rows[0].count = 1;
	other.rows[0].number = 0;
	cr_assert_eq(name_by(&other, name), 0);
	cr_expect_str_eq(name, "main_graph");
}

/* Behind the object lie others: longer rows, the end of which is none, and rows of another version. */
Test(target_process_objects, name_in_the_first_row)
{
	static struct {
		struct string types[11];
		long apart[4];
		struct string metadata[5];
		long more[4];
		struct string others[6];
	} object;
	const struct name_way way = {
		.kind = NAME_ROW, .within = sizeof(object), .rows = { { 6, 2 }, { 5, 1 } }, .row_count = 2
	};
	char name[OBJECT_NAME_MAX + 1];

	for (size_t i = 0; i < 11; i++)
		set(&object.types[i], "tensor(uint32)", 0);
	for (size_t i = 0; i < 6; i++)
		set(&object.others[i], "other", 0);
	for (size_t i = 0; i < 5; i++)
		set(&object.metadata[i], i == 1 ? "graph" : "metadata", 0);
	cr_assert_eq(object_name_read(&way, getpid(), (uintptr_t)&object, name), 0);
	cr_expect_str_eq(name, "graph");
	memset(object.metadata, 0, sizeof(object.metadata));
	cr_assert_eq(object_name_read(&way, getpid(), (uintptr_t)&object, name), 0);
	cr_expect_str_eq(name, "other");
	memset(object.others, 0, sizeof(object.others));
	cr_expect_eq(object_name_read(&way, getpid(), (uintptr_t)&object, name), -ENOENT, "%s", name);
}

Test(target_process_objects, old_form_of_strings)
{
	struct name_way wide = by_path;
	char name[OBJECT_NAME_MAX + 1];

	fresh_session("", "");
	memset(session.metadata, 0, sizeof(session.metadata));
	for (int i = 0; i < 5; i++) {
		snprintf(texts[i].text, sizeof(texts[i].text), "%s", i == 1 ? "main_graph" : i == 3 ? "/m/b.onnx" : "");
		texts[i].length = strlen(texts[i].text);
		texts[i].capacity = texts[i].length + 5;
		session.old[i] = texts[i].text;
	}
	cr_assert_eq(name_by(&in_row, name), 0);
	cr_expect_str_eq(name, "main_graph");
	wide.within = sizeof(session);
	cr_assert_eq(name_by(&wide, name), 0);
	cr_expect_str_eq(name, "/m/b.onnx");
	texts[3].length = 3; /* the text goes on */
	cr_expect_eq(name_by(&wide, name), -ENOENT);
}

Test(target_process_objects, name_at_an_offset)
{
	struct name_way way = { .kind = NAME_STRING, .at = sizeof(void *) };
	char name[OBJECT_NAME_MAX + 1];

	fresh_session("TinyLlama 1.1B", "");
	cr_assert_eq(name_by(&way, name), 0);
	cr_expect_str_eq(name, "TinyLlama 1.1B");
	way.at = 0;
	cr_expect_eq(name_by(&way, name), -ENOENT);
	way = (struct name_way){ .kind = NAME_POINTER,
				 .at = (unsigned int)((char *)&session.symbol - (char *)&session) };
	cr_expect_eq(name_by(&way, name), -ENOENT);
	session.symbol = "vector_add";
	cr_assert_eq(name_by(&way, name), 0);
	cr_expect_str_eq(name, "vector_add");
	session.symbol = "not a kernel";
	cr_expect_eq(name_by(&way, name), -ENOENT);
	session.symbol = (const char *)8;
	cr_expect_eq(name_by(&way, name), -ENOENT);
}

Test(target_process_objects, place_of_a_name)
{
	static const char path[] = "/models/with an ending of its own.bin";
	struct name_place place = { 0 };
	struct counted *old = &texts[0];

	fresh_session(path, path);
	session.table = &session;
	cr_assert_eq(object_name_find(getpid(), (uintptr_t)&session, path, &place), 0);
	cr_expect_eq(place.at, (__u64)((char *)&session.location - (char *)&session), "the first one");
	cr_expect_eq(place.table, (uintptr_t)&session);
	cr_expect_eq(object_name_find(getpid(), (uintptr_t)&session, path + 1, &place), -ENOENT,
		     "a part is not the name");
	cr_expect_eq(object_name_find(getpid(), (uintptr_t)&session, "", &place), -ENOENT);
	cr_expect_eq(object_name_find(getpid(), (uintptr_t)&session + 4, path, &place), -ENOENT);
	fresh_session("", "");
	snprintf(old->text, sizeof(old->text), "%s", path);
	old->length = old->capacity = strlen(path);
	session.old[2] = old->text;
	cr_assert_eq(object_name_find(getpid(), (uintptr_t)&session, path, &place), 0);
	cr_expect_eq(place.at, (__u64)((char *)&session.old[2] - (char *)&session));
}

Test(target_process_objects, names_end_with_what_is_mapped)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct string *at_end = (struct string *)(last_page(size) + size) - 1;
	struct name_way way = by_path;
	char name[OBJECT_NAME_MAX + 1];

	set(at_end, "a.onnx", 0);
	way.within = DESCRIPTION_WITHIN_MAX;
	cr_assert_eq(object_name_read(&way, getpid(), (uintptr_t)at_end, name), 0);
	cr_expect_str_eq(name, "a.onnx");
	cr_expect_eq(object_name_read(&in_row, getpid(), (uintptr_t)at_end, name), -ENOENT);
	cr_expect_eq(object_name_read(&way, getpid(), (uintptr_t)at_end + 4, name), -ENOENT);
	cr_expect_eq(object_name_read(&way, getpid(), 8, name), -ENOENT);
}
