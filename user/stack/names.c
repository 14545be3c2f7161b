/* SPDX-License-Identifier: BSD-2-Clause */
/* What is at an address: the functions, as FRAME records, and the file, as a MODULE record. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/text.h"
#include "stack/private.h"
#include "target/elf/type_name.h"

#define NAME_MAX_BYTES 4096
#define RECORD_TEXT_MAX 60000
#define PROCESS_PLACE (1ull << 63) /* in a key: the number of a process, not of a module */
#define PYTHON_PLACE (1ull << 62)  /* the same, of its Python code */
#define MADE_PLACE (1ull << 61)	   /* the same, of code that it has made */

/* What is known of a function at an address. */
struct function {
	const char *kind;
	const char *name; /* NULL: unknown, as is: */
	const char *file;
	int line;
	__u32 module;
	__u64 offset;
	bool inlined;
};

/* ---- records ---- */

static int give_text(struct unwinder *unwinder, enum xpt_record_kind kind, __u64 id, struct text *json)
{
	struct xpt_record_text *record;
	int error;

	json_end(json, '}');
	record = json->error || json->length > RECORD_TEXT_MAX ? NULL :
								 calloc(1, XPT_ALIGN8(sizeof(*record) + json->length));
	error = record ? 0 : -ENOMEM;
	if (record) {
		record->header = (struct xpt_record_header){ kind, XPT_ALIGN8(sizeof(*record) + json->length), 0, 0 };
		record->id = id;
		record->length = json->length;
		memcpy(record->text, json->data, json->length);
		unwinder->options.record(unwinder->options.context, &record->header);
	}
	free(record);
	text_free(json);
	return error;
}

static void add_text(struct text *json, const char *key, const char *text)
{
	if (!text)
		return;
	json_key(json, key);
	text_json(json, text, text_cut(text, strnlen(text, NAME_MAX_BYTES + 1), NAME_MAX_BYTES));
}

/* 0: no memory. */
static __u32 give_frame(struct unwinder *unwinder, const struct function *function)
{
	struct text json = {};
	__u32 id = unwinder->next_frame;

	json_begin(&json, NULL, '{');
	json_add_string(&json, "kind", function->kind);
	add_text(&json, "function", function->name);
	if (function->module) {
		json_add_unsigned(&json, "module", function->module);
		json_add_unsigned(&json, "offset", function->offset);
	}
	add_text(&json, "file", function->file);
	if (function->line > 0)
		json_add_unsigned(&json, "line", (__u64)function->line);
	if (function->inlined)
		json_add_bool(&json, "inlined", true);
	if (give_text(unwinder, XPT_RECORD_FRAME, id, &json))
		return 0;
	unwinder->next_frame++;
	return id;
}

/* Id of its record, which is made when there is none. 0: no memory. */
static __u32 give_module(struct unwinder *unwinder, const char *path, Dwfl_Module *mod)
{
	char digits[2 * STACK_BUILD_ID_MAX + 1] = "";
	const unsigned char *build_id;
	struct text json = {};
	GElf_Addr address;
	int size = dwfl_module_build_id(mod, &build_id, &address);
	__u32 id = unwinder->next_module;

	if (size > 0)
		bytes_to_digits(build_id, size < STACK_BUILD_ID_MAX ? (size_t)size : STACK_BUILD_ID_MAX, digits);
	json_begin(&json, NULL, '{');
	json_key(&json, "path");
	text_json_string(&json, path);
	if (*digits)
		json_add_string(&json, "build_id", digits);
	if (give_text(unwinder, XPT_RECORD_MODULE, id, &json))
		return 0;
	unwinder->next_module++;
	return id;
}

/* ---- names ---- */

void name_demangle(const char *symbol, char *text, size_t size)
{
	if (type_name_read_function(symbol, text, size))
		snprintf(text, size, "%s", symbol);
	/* Versions of symbols are of no use here. */
	text[strcspn(text, "@")] = '\0';
}

static const char *die_name(Dwarf_Die *die, char *text, size_t size)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));

	if (!name)
		name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
	if (name) {
		name_demangle(name, text, size);
		return text;
	}
	return dwarf_diename(die);
}

/* Where an inlined function is called. */
static void read_call(Dwarf_Die *unit, Dwarf_Die *die, const char **file, int *line)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t count;

	*file = NULL;
	*line = 0;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number))
		*line = (int)number;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &number) &&
	    !dwarf_getsrcfiles(unit, &files, &count) && number < count)
		*file = dwarf_filesrc(files, number, NULL, NULL);
}

/* The functions at an address of a file with debug information, the innermost first; how many there are. */
static unsigned int read_debug(struct unwinder *unwinder, Dwfl_Module *mod, Dwarf_Addr address,
			       struct function function, __u32 ids[INLINED_MAX])
{
	char name[NAME_MAX_BYTES];
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(mod, address, &bias), *scopes = NULL;
	Dwfl_Line *line = dwfl_module_getsrc(mod, address);
	int count = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;
	const char *outermost = function.name;
	unsigned int used = 0;

	if (line)
		function.file = dwfl_lineinfo(line, NULL, &function.line, NULL, NULL, NULL);
	for (int i = 0; i < count && used < INLINED_MAX - 1; i++) {
		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		function.name = die_name(&scopes[i], name, sizeof(name));
		function.inlined = true;
		ids[used] = give_frame(unwinder, &function);
		used += ids[used] != 0;
		read_call(unit, &scopes[i], &function.file, &function.line);
	}
	function.inlined = false;
	function.name = outermost;
	for (int i = 0; i < count && !function.name; i++)
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			function.name = die_name(&scopes[i], name, sizeof(name));
	ids[used] = give_frame(unwinder, &function);
	used += ids[used] != 0;
	free(scopes);
	return used;
}

static unsigned int read_native(struct process *process, Dwfl_Module *mod, __u32 module, Dwarf_Addr address,
				Dwarf_Addr offset, __u32 ids[INLINED_MAX])
{
	struct function function = { .kind = "native", .module = module, .offset = offset };
	char name[NAME_MAX_BYTES];
	GElf_Off from;
	GElf_Sym symbol;
	const char *found = dwfl_module_addrinfo(mod, address, &from, &symbol, NULL, NULL, NULL);

	if (found) {
		name_demangle(found, name, sizeof(name));
		function.name = *name ? name : NULL;
	}
	return read_debug(process->unwinder, mod, address, function, ids);
}

static __u32 give_unknown(struct unwinder *unwinder)
{
	if (!unwinder->unknown)
		unwinder->unknown = give_frame(unwinder, &(struct function){ .kind = "unknown" });
	return unwinder->unknown;
}

__u32 frame_unknown(struct process *process)
{
	return give_unknown(process->unwinder);
}

/* "JS:*work file:///srv/main.mjs:68:12", as V8 has it: a name that may be missing, a file, line and column. */
static void read_javascript(char *text, struct function *function)
{
	char *name = strchr(text, ':') + 1, *file, *line, *column;

	name += strspn(name, "*~^+'");
	file = strrchr(name, ' ');
	function->name = name;
	if (!file)
		return;
	*file++ = '\0';
	column = strrchr(file, ':');
	if (column) {
		*column = '\0';
		line = strrchr(file, ':');
		if (line) {
			*line = '\0';
			function->line = atoi(line + 1);
		}
	}
	function->file = !strncmp(file, "file://", 7) ? file + 7 : file;
	function->name = *name ? name : NULL;
}

/* Of code of no file. The text is changed. */
static __u32 give_made(struct process *process, char *text)
{
	static const char *const prefixes[] = { "JS:", "LazyCompile:", "Function:", "Script:", "Eval:" };
	struct function function = { .kind = process->is_javascript ? "javascript" : "unknown", .name = text };

	for (size_t i = 0; text && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (!strncmp(text, prefixes[i], strlen(prefixes[i]))) {
			function.kind = "javascript";
			read_javascript(text, &function);
			break;
		}
	}
	return give_frame(process->unwinder, &function);
}

/* ---- places ---- */

static const struct place *place_add(struct unwinder *unwinder, __u64 a, __u64 b, const __u32 *ids, unsigned int count)
{
	struct place *place = calloc(1, sizeof(*place) + count * sizeof(*ids));

	if (!place || !count || map_add(&unwinder->places, &place->node, a, b)) {
		free(place);
		return NULL;
	}
	place->count = count;
	memcpy(place->frame, ids, count * sizeof(*ids));
	link_append(&unwinder->place_list, &place->link);
	return place;
}

static const struct place *place_find(const struct unwinder *unwinder, __u64 a, __u64 b)
{
	struct map_node *node = map_find(&unwinder->places, a, b);

	return node ? container_of(node, const struct place, node) : NULL;
}

/* By what is said of it: code is moved, and other code made where it was. */
static const struct place *place_made(struct process *process, __u64 address)
{
	const char *text = made_find(process, address);
	const __u64 a = MADE_PLACE | process->serial;
	const __u64 b = text ? (__u64)(text - process->name_text.data) + 1 : 0;
	const struct place *place = place_find(process->unwinder, a, b);
	char *copy;
	__u32 id;

	if (place || process->unwinder->places.count >= FRAMES_MAX)
		return place ?: place_find(process->unwinder, 0, 0);
	copy = text ? strdup(text) : NULL;
	id = text && !copy ? 0 : give_made(process, copy);
	free(copy);
	return place_add(process->unwinder, a, b, &id, id != 0);
}

const struct place *place_get(struct process *process, __u64 address)
{
	struct unwinder *unwinder = process->unwinder;
	Dwfl_Module *mod = dwfl_addrmodule(process->dwfl, address);
	const struct code_range *range = process_range(process, address);
	__u64 a = PROCESS_PLACE | process->serial, b = address;
	__u32 ids[INLINED_MAX], *module = NULL;
	const struct place *place;
	GElf_Addr bias;
	unsigned int count;

	if (mod && range && (range->module || range->is_vdso) && dwfl_module_getelf(mod, &bias)) {
		module = range->module ? &range->module->id : &process->vdso_module;
		if (!*module)
			*module = give_module(unwinder, range->module ? range->module->path : "[vdso]", mod);
		a = *module;
		b = address - bias;
	}
	if (!module && range && !range->module)
		return place_made(process, address);
	place = place_find(unwinder, a, b);
	if (place)
		return place;
	if (unwinder->places.count >= FRAMES_MAX) {
		ids[0] = give_unknown(unwinder);
		place = place_find(unwinder, 0, 0);
		return place ?: place_add(unwinder, 0, 0, ids, ids[0] != 0);
	}
	if (module && *module)
		count = read_native(process, mod, *module, address, b, ids);
	else
		count = (ids[0] = give_unknown(unwinder)) != 0;
	return place_add(unwinder, a, b, ids, count);
}

__u32 frame_find(const struct process *process, __u64 hash)
{
	const struct place *place = place_find(process->unwinder, PYTHON_PLACE | process->serial, hash);

	return place ? place->frame[0] : 0;
}

__u32 frame_python(struct process *process, __u64 hash, __u64 place, const char *name, const char *file, int line)
{
	const struct function function = { .kind = "python", .name = name, .file = file, .line = line };
	__u32 id = process->unwinder->places.count < FRAMES_MAX ? give_frame(process->unwinder, &function) : 0;

	/* The newest is found first. */
	if (id) {
		place_add(process->unwinder, PYTHON_PLACE | process->serial, hash, &id, 1);
		place_add(process->unwinder, PYTHON_PLACE | process->serial, place, &id, 1);
	}
	return id;
}
