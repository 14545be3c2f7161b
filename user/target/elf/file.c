/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers, segments and the dynamic section. Everything is read with pread(): libelf would map the file or trust sizes,
 * and little more than four structures of the format is needed.
 */
#include "target/elf/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/text.h"
#include "base/file/file.h"
#include "target/elf/internal.h"

#define ENTRIES_BYTES 16384 /* of a table that are read together */
#define NOTE_BYTES_MAX (64u << 10)
#define INTERPRETER_MAX 4096
#define DYNAMIC_MAX 4096

int elf_file_read_offset(struct elf_file *file, __u64 offset, void *buffer, size_t length)
{
	size_t done;
	int error;

	if (offset > file->size || length > file->size - offset)
		return -EFAULT;
	error = file_read_at(file->fd, buffer, length, offset, &done);
	if (error) {
		file->error = file->error ?: error;
		return file->error;
	}
	return done < length ? -EFAULT : 0;
}

int elf_file_each_entry(struct elf_file *file, __u64 offset, size_t size, size_t count,
			int (*visit)(void *context, const void *entry), void *context)
{
	alignas(__u64) unsigned char bytes[ENTRIES_BYTES];
	__u64 there = offset < file->size ? (file->size - offset) / size : 0;
	size_t together = sizeof(bytes) / size;

	if (count > there)
		count = there;
	for (size_t done = 0; done < count; done += together) {
		size_t part = count - done < together ? count - done : together;

		if (elf_file_read_offset(file, offset + done * size, bytes, part * size))
			return 0;
		for (size_t i = 0; i < part; i++) {
			int stop = visit(context, bytes + i * size);

			if (stop)
				return stop;
		}
	}
	return 0;
}

int elf_file_each_note(struct elf_file *file, __u64 offset, size_t length, size_t align,
		       int (*visit)(void *context, const struct elf_note *note), void *context)
{
	unsigned char *bytes = malloc(length + 1);
	size_t at = 0;
	int stop = 0;

	if (!bytes)
		return -ENOMEM;
	if (elf_file_read_offset(file, offset, bytes, length))
		length = 0;
	while (!stop && length - at >= sizeof(Elf64_Nhdr)) {
		size_t name = at + sizeof(Elf64_Nhdr), content;
		Elf64_Nhdr note;

		memcpy(&note, bytes + at, sizeof(note));
		content = name + (((size_t)note.n_namesz + align - 1) & ~(align - 1));
		at = content + (((size_t)note.n_descsz + align - 1) & ~(align - 1));
		if (content > length || note.n_descsz > length - content)
			break;
		stop = visit(context, &(struct elf_note){ note.n_type, bytes + name, note.n_namesz, bytes + content,
							  note.n_descsz });
		if (at >= length)
			break;
	}
	free(bytes);
	return stop;
}

static const struct elf_segment *find_segment(const struct elf_file *file, __u64 address)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (address >= segment->address && address - segment->address < segment->memory_size)
			return segment;
	}
	return NULL;
}

int elf_file_locate(struct elf_file *file, __u64 address, __u64 *offset, __u64 *left)
{
	const struct elf_segment *segment = find_segment(file, address);
	__u64 into;

	if (!segment)
		return -ENOENT;
	into = address - segment->address;
	if (into >= segment->file_size)
		return -ENOENT;
	*offset = segment->offset + into;
	*left = segment->file_size - into;
	return 0;
}

int elf_file_read(struct elf_file *file, __u64 address, void *buffer, size_t length)
{
	unsigned char *to = buffer;

	while (length) {
		const struct elf_segment *segment = find_segment(file, address);
		__u64 into, part;
		int error;

		if (!segment)
			return -EFAULT;
		into = address - segment->address;
		if (into < segment->file_size) {
			part = segment->file_size - into;
			if (part > length)
				part = length;
			error = elf_file_read_offset(file, segment->offset + into, to, part);
			if (error)
				return error;
		} else {
			part = segment->memory_size - into;
			if (part > length)
				part = length;
			memset(to, 0, part);
		}
		to += part;
		address += part;
		length -= part;
	}
	return 0;
}

int elf_file_offset(struct elf_file *file, __u64 address, __u64 *offset)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (!segment->executable || address < segment->address ||
		    address - segment->address >= segment->file_size)
			continue;
		*offset = address - segment->address + segment->offset;
		return 0;
	}
	return -ENOENT;
}

size_t elf_file_extents(const struct elf_file *file, struct elf_extent *extents, size_t count)
{
	for (size_t i = 0; i < file->segment_count && i < count; i++) {
		const struct elf_segment *segment = &file->segments[i];

		extents[i] = (struct elf_extent){ segment->offset, segment->file_size, segment->address,
						  segment->executable };
	}
	return file->segment_count < count ? file->segment_count : count;
}

int elf_file_address(struct elf_file *file, __u64 offset, __u64 *address)
{
	/* neighbouring segments may share a page of the file; probes are about the executable one */
	for (int executable = 1; executable >= 0; executable--) {
		for (size_t i = 0; i < file->segment_count; i++) {
			const struct elf_segment *segment = &file->segments[i];

			if (segment->executable != executable || offset < segment->offset ||
			    offset - segment->offset >= segment->file_size)
				continue;
			*address = offset - segment->offset + segment->address;
			return 0;
		}
	}
	return -ENOENT;
}

bool elf_file_is_executable(struct elf_file *file, __u64 address)
{
	__u64 offset;

	return elf_file_offset(file, address, &offset) == 0;
}

bool elf_file_is_writable(struct elf_file *file, __u64 address)
{
	const struct elf_segment *segment = find_segment(file, address);

	return segment && segment->writable;
}

int elf_file_data_offset(struct elf_file *file, __u64 address, __u64 *offset)
{
	__u64 left;

	if (!elf_file_is_writable(file, address))
		return -ENOENT;
	return elf_file_locate(file, address, offset, &left);
}

enum elf_machine elf_file_machine(const struct elf_file *file)
{
	return file->machine;
}

const char *elf_file_interpreter(const struct elf_file *file)
{
	return file->interpreter;
}

const char *elf_file_build_id(const struct elf_file *file)
{
	return file->build_id;
}

static int read_interpreter(struct elf_file *file, const Elf64_Phdr *header)
{
	size_t length = header->p_filesz;

	if (file->interpreter || !length || length > INTERPRETER_MAX)
		return -ENOEXEC;
	file->interpreter = calloc(1, length + 1);
	if (!file->interpreter)
		return -ENOMEM;
	return elf_file_read_offset(file, header->p_offset, file->interpreter, length) ? -ENOEXEC : 0;
}

/* Keeps the build id, and ends the walk. */
static int visit_note(void *context, const struct elf_note *note)
{
	struct elf_file *file = context;

	if (note->type != NT_GNU_BUILD_ID || note->name_length != 4 || memcmp(note->name, "GNU", 4) != 0)
		return 0;
	if (note->length > (sizeof(file->build_id) - 1) / 2)
		return 1;
	bytes_to_digits(note->content, note->length, file->build_id);
	return 1;
}

/* A damaged note costs the build id, nothing else. */
static int read_notes(struct elf_file *file, const Elf64_Phdr *header)
{
	int stop;

	if (file->build_id[0] || header->p_filesz > NOTE_BYTES_MAX)
		return 0;
	stop = elf_file_each_note(file, header->p_offset, header->p_filesz, header->p_align == 8 ? 8 : 4, visit_note,
				  file);
	return stop < 0 ? stop : 0;
}

static int visit_dynamic(void *context, const void *entry)
{
	struct elf_file *file = context;
	const Elf64_Dyn *dynamic = entry;
	const struct {
		Elf64_Sxword tag;
		__u64 *value;
	} known[] = {
		{ DT_SYMTAB, &file->dynamic_symbols },
		{ DT_STRTAB, &file->dynamic_strings },
		{ DT_STRSZ, &file->dynamic_strings_size },
		{ DT_HASH, &file->hash },
		{ DT_GNU_HASH, &file->gnu_hash },
		{ DT_RELA, &file->rela.address },
		{ DT_RELASZ, &file->rela.size },
		{ DT_REL, &file->rel.address },
		{ DT_RELSZ, &file->rel.size },
		{ DT_RELR, &file->relr.address },
		{ DT_RELRSZ, &file->relr.size },
		{ DT_JMPREL, &file->plt.address },
		{ DT_PLTRELSZ, &file->plt.size },
	};

	if (dynamic->d_tag == DT_NULL)
		return 1;
	if (dynamic->d_tag == DT_PLTREL)
		file->plt_is_rela = dynamic->d_un.d_val == DT_RELA;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].tag == dynamic->d_tag)
			*known[i].value = dynamic->d_un.d_val;
	return 0;
}

/* Go's linker leaves the note to a section alone. */
static int visit_note_section(void *context, const struct elf_section *section)
{
	struct elf_file *file = context;
	int stop;

	if (strcmp(section->name, ".note.gnu.build-id") || section->size > NOTE_BYTES_MAX)
		return 0;
	stop = elf_file_each_note(file, section->offset, section->size, 4, visit_note, file);
	return stop < 0 ? stop : 1;
}

static void read_dynamic(struct elf_file *file, const Elf64_Phdr *header)
{
	size_t count = header->p_filesz / sizeof(Elf64_Dyn);

	elf_file_each_entry(file, header->p_offset, sizeof(Elf64_Dyn), count < DYNAMIC_MAX ? count : DYNAMIC_MAX,
			    visit_dynamic, file);
}

static int add_segment(struct elf_file *file, const Elf64_Phdr *header)
{
	struct elf_segment *segment;

	if (header->p_filesz > header->p_memsz || header->p_vaddr + header->p_memsz < header->p_vaddr ||
	    header->p_offset + header->p_filesz < header->p_offset || file->segment_count == ELF_SEGMENT_MAX)
		return -ENOEXEC;
	segment = &file->segments[file->segment_count++];
	segment->address = header->p_vaddr;
	segment->offset = header->p_offset;
	segment->file_size = header->p_filesz;
	segment->memory_size = header->p_memsz;
	segment->executable = header->p_flags & PF_X;
	segment->writable = header->p_flags & PF_W;
	return 0;
}

static int read_program_header(struct elf_file *file, const Elf64_Phdr *header)
{
	switch (header->p_type) {
	case PT_LOAD:
		return add_segment(file, header);
	case PT_INTERP:
		return read_interpreter(file, header);
	case PT_NOTE:
		return read_notes(file, header);
	case PT_DYNAMIC:
		read_dynamic(file, header);
		return 0;
	case PT_GNU_EH_FRAME:
		file->frame_header.address = header->p_vaddr;
		file->frame_header.size = header->p_memsz;
		return 0;
	}
	return 0;
}

/* A file that ends before is none of ELF. */
static int read_header(struct elf_file *file, __u64 offset, void *header, size_t length)
{
	int error = elf_file_read_offset(file, offset, header, length);

	return error == -EFAULT ? -ENOEXEC : error;
}

static int read_headers(struct elf_file *file)
{
	Elf64_Ehdr *header = &file->header;
	Elf64_Phdr program;
	int error;

	error = read_header(file, 0, header, EI_NIDENT);
	if (error)
		return error;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOTSUP;
	error = read_header(file, 0, header, sizeof(*header));
	if (error)
		return error;
	if (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64)
		return -ENOTSUP;
	if ((header->e_type != ET_DYN && header->e_type != ET_EXEC) || header->e_phentsize != sizeof(program) ||
	    header->e_phnum > ELF_HEADER_MAX)
		return -ENOEXEC;
	file->machine = header->e_machine == EM_X86_64 ? ELF_MACHINE_X86_64 : ELF_MACHINE_AARCH64;
	file->fixed_address = header->e_type == ET_EXEC;

	for (size_t i = 0; i < header->e_phnum; i++) {
		error = read_header(file, header->e_phoff + i * sizeof(program), &program, sizeof(program)) ?:
				read_program_header(file, &program);
		if (error)
			return error;
	}
	if (!file->segment_count)
		return -ENOEXEC;
	error = file->build_id[0] ? 0 : elf_file_each_section(file, visit_note_section, file);
	return error == -ENOMEM ? error : 0;
}

/* Opening a device or a FIFO has effects; only regular files are. */
static int open_regular(const char *path, __u64 *size)
{
	struct stat status;
	int fd, error;

	if (stat(path, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -ENOEXEC;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status)) {
		error = -errno;
		close(fd);
		return error;
	}
	if (!S_ISREG(status.st_mode)) {
		close(fd);
		return -ENOEXEC;
	}
	*size = (__u64)status.st_size;
	return fd;
}

/* Takes over a descriptor that is not borrowed, or an error in its place. */
static int open_file(const struct log *log, int descriptor, bool borrowed, __u64 size, const char *name,
		     struct elf_file **result)
{
	struct elf_file *file = descriptor < 0 ? NULL : calloc(1, sizeof(*file));
	int error = descriptor < 0 ? descriptor : -ENOMEM;

	if (!file) {
		if (descriptor >= 0 && !borrowed)
			close(descriptor);
		return error;
	}
	if (log)
		file->log = *log;
	file->fd = descriptor;
	file->borrowed = borrowed;
	file->size = size;
	file->name = strdup(name);
	error = file->name ? read_headers(file) : -ENOMEM;
	if (error) {
		error = file->error ?: error; /* what cannot be read is not damaged */
		elf_file_close(file);
		return error;
	}
	*result = file;
	return 0;
}

int elf_file_open(const struct log *log, const char *path, const char *name, struct elf_file **result)
{
	__u64 size = 0;
	int descriptor = open_regular(path, &size);

	return open_file(log, descriptor, false, size, name, result);
}

int elf_file_open_descriptor(const struct log *log, int descriptor, const char *name, struct elf_file **result)
{
	off_t size = lseek(descriptor, 0, SEEK_END);

	return size < 0 ? -errno : open_file(log, descriptor, true, size, name, result);
}

int elf_file_error(const struct elf_file *file)
{
	return file->error;
}

void elf_file_close(struct elf_file *file)
{
	if (!file)
		return;
	if (!file->borrowed)
		close(file->fd);
	free(file->name);
	free(file->interpreter);
	free(file->dynamic.strings);
	free(file->full.strings);
	free(file->relocations);
	free(file->frames);
	free(file->ranges);
	free(file);
}
