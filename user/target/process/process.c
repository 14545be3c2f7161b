/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything in /proc can vanish between two reads. */
#include "target/process/process.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "target/elf/file.h"

/*
 * ---- mappings ----
 *
 * "7f0000000000-7f0000001000 r-xp 00001000 08:01 1234     /path with spaces (deleted)"
 *
 * The path is the rest of the line and may hold anything; the kernel writes a newline in it as \012. It is not decoded:
 * a backslash is not escaped, so the text could also be a file that is really named so.
 */

/* A number that begins right here and is followed by the given character. */
static bool take_number(char **at, int base, char follows, __u64 *value)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	errno = 0;
	*value = strtoull(*at, &end, base);
	if (errno || end == *at || *end != follows)
		return false;
	*at = end + 1;
	return true;
}

static void cut_deleted(char *path, struct maps_entry *entry)
{
	static const char mark[] = " (deleted)";
	size_t length = strlen(path), mark_length = sizeof(mark) - 1;

	entry->deleted = length > mark_length && !strcmp(path + length - mark_length, mark);
	if (entry->deleted)
		path[length - mark_length] = '\0';
}

int maps_entry_parse(char *line, struct maps_entry *entry)
{
	__u64 major_number, minor_number;
	char *at = line, *end = line + strlen(line);

	if (end > line && end[-1] == '\n')
		end[-1] = '\0';
	if (!take_number(&at, 16, '-', &entry->start) || !take_number(&at, 16, ' ', &entry->end) ||
	    entry->start >= entry->end || strnlen(at, 5) < 5 || at[4] != ' ')
		return -EINVAL;
	entry->executable = at[2] == 'x';
	at += 5;
	if (!take_number(&at, 16, ' ', &entry->offset) || !take_number(&at, 16, ':', &major_number) ||
	    !take_number(&at, 16, ' ', &minor_number) || !isdigit((unsigned char)*at))
		return -EINVAL;
	entry->device = makedev((unsigned int)major_number, (unsigned int)minor_number);
	errno = 0;
	entry->inode = strtoull(at, &at, 10);
	if (errno || (*at && *at != ' '))
		return -EINVAL;
	at += strspn(at, " ");
	cut_deleted(at, entry);
	entry->path = at;
	return 0;
}

int maps_each(pid_t pid, int (*visit)(void *context, const struct maps_entry *entry), void *context)
{
	size_t capacity = 0;
	char *line = NULL;
	char path[64];
	int result = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : errno == EPERM ? -EACCES : -errno;
	errno = 0;
	while (!result && getline(&line, &capacity, maps) > 0) {
		struct maps_entry entry;

		if (maps_entry_parse(line, &entry) == 0)
			result = visit(context, &entry);
		errno = 0;
	}
	/* Not for want of memory, either. */
	if (!result && !feof(maps))
		result = errno == EPERM ? -EACCES : errno ? -errno : -EIO;
	free(line);
	fclose(maps);
	return result;
}

bool maps_entry_has_file(const struct maps_entry *entry)
{
	return entry->inode && entry->path[0] && entry->path[0] != '[';
}

void maps_entry_open_path(const struct maps_entry *entry, pid_t pid, char path[MAP_FILE_PATH_MAX])
{
	snprintf(path, MAP_FILE_PATH_MAX, "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)entry->start,
		 (unsigned long long)entry->end);
}

/* ---- reading /proc ---- */

#define COMMAND_MAX 4096
#define ENVIRONMENT_MAX (1u << 20)    /* usual ones have some KiB */
#define FLAG_KERNEL_THREAD 0x00200000 /* PF_KTHREAD in field 9 of stat */

static void proc_path(char *path, size_t size, pid_t pid, const char *file)
{
	snprintf(path, size, "/proc/%d/%s", (int)pid, file);
}

/* A process that has ended is "no such process", whichever way /proc reports it. */
static int proc_error(int error)
{
	return error == ENOENT || error == ESRCH ? -ESRCH : error == EPERM ? -EACCES : -error;
}

/* Reads at most size - 1 bytes of a small file and terminates them; returns their number. */
static ssize_t read_small(pid_t pid, const char *file, char *buffer, size_t size)
{
	size_t length = 0;
	char path[64];
	int fd, error = 0;

	proc_path(path, sizeof(path), pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return proc_error(errno);
	while (length < size - 1) {
		ssize_t got = read(fd, buffer + length, size - 1 - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			error = proc_error(errno);
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	close(fd);
	buffer[length] = '\0';
	return length || !error ? (ssize_t)length : error;
}

/* ---- mapped files ---- */

static bool is_known(const struct mapped_files *files, __u64 device, __u64 inode)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].device == device && files->files[i].inode == inode)
			return true;
	return false;
}

static int add_mapped(struct mapped_files *files, const struct maps_entry *entry, const struct mapped_file *identity)
{
	struct mapped_file *file;

	if (vec_reserve(files->files, files->count))
		return -ENOMEM;
	file = &files->files[files->count];
	*file = *identity;
	file->start = entry->start;
	file->end = entry->end;
	file->offset = entry->offset;
	file->deleted = entry->deleted;
	file->path = strdup(entry->path);
	if (!file->path)
		return -ENOMEM;
	files->count++;
	return 0;
}

struct mapped_walk {
	pid_t pid;
	struct mapped_files *files;
};

/*
 * The numbers in maps are the superblock's: on btrfs and overlayfs they are not what stat() gives, and identity with a file
 * opened elsewhere would be missed. Without permission to follow the link, they are the best there is.
 */
static int note_entry(void *context, const struct maps_entry *entry)
{
	struct mapped_file identity = { .device = entry->device, .inode = entry->inode };
	const struct mapped_walk *walk = context;
	struct statx status;

	if (!entry->executable || !maps_entry_has_file(entry))
		return 0;
	maps_entry_open_path(entry, walk->pid, identity.open_path);
	/* What the kernel knows: the file system may hang. */
	if (!statx(AT_FDCWD, identity.open_path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &status)) {
		if (!S_ISREG(status.stx_mode))
			return 0;
		identity.device = makedev(status.stx_dev_major, status.stx_dev_minor);
		identity.inode = status.stx_ino;
	}
	return is_known(walk->files, identity.device, identity.inode) ? 0 : add_mapped(walk->files, entry, &identity);
}

int process_mapped_files(pid_t pid, struct mapped_files *result)
{
	struct mapped_walk walk = { pid, result };
	int error;

	memset(result, 0, sizeof(*result));
	error = maps_each(pid, note_entry, &walk);
	if (error)
		mapped_files_free(result);
	return error;
}

void mapped_files_free(struct mapped_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->files[i].path);
	free(files->files);
	memset(files, 0, sizeof(*files));
}

/* ---- one process ---- */

/* The name is in parentheses and may itself hold any of them: the last one ends it. */
int process_stat_parse(const char *text, struct process_stat *result)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long long user, system, start_time;
	size_t length;

	if (!open || !close || close < open)
		return -ESRCH;
	length = (size_t)(close - open - 1);
	if (length >= sizeof(result->name))
		length = sizeof(result->name) - 1;
	memcpy(result->name, open + 1, length);
	result->name[length] = '\0';
	/* fields 3, 4, 9, 14, 15, 20 and 22 */
	if (sscanf(close + 1, " %c %d %*d %*d %*d %*d %lu %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %u %*d %llu",
		   &result->state, &result->parent, &result->flags, &user, &system, &result->threads, &start_time) != 7)
		return -ESRCH;
	result->user_ticks = user;
	result->system_ticks = system;
	result->start_time = start_time;
	return 0;
}

static int read_stat(pid_t pid, struct process_stat *result)
{
	char text[PROCESS_STAT_MAX];
	ssize_t got = read_small(pid, "stat", text, sizeof(text));

	return got < 0 ? (int)got : process_stat_parse(text, result);
}

static int read_thread_group(pid_t pid, pid_t *tgid)
{
	char text[4096], *field;
	ssize_t got = read_small(pid, "status", text, sizeof(text));

	if (got < 0)
		return (int)got;
	field = strstr(text, "\nTgid:");
	if (!field || sscanf(field, "\nTgid: %d", tgid) != 1)
		return -ESRCH;
	return 0;
}

static int read_command(pid_t pid, char **command)
{
	char text[COMMAND_MAX + 1];
	ssize_t length = read_small(pid, "cmdline", text, sizeof(text));

	if (length < 0)
		length = 0;
	/* arguments end with NUL each; the last one's is no separator */
	while (length && !text[length - 1])
		length--;
	for (ssize_t i = 0; i < length; i++)
		if (!text[i])
			text[i] = ' ';
	text[length] = '\0';
	*command = strdup(text);
	return *command ? 0 : -ENOMEM;
}

int process_progress_read(pid_t pid, struct process_progress *result)
{
	struct process_stat stat;
	char text[512];
	int error = read_stat(pid, &stat);
	ssize_t length = error ? error : read_small(pid, "io", text, sizeof(text));

	if (error)
		return error;
	*result = (struct process_progress){ stat.state == 'R', stat.user_ticks + stat.system_ticks };
	if (length > 0 && !strncmp(text, "rchar: ", 7))
		result->sum += strtoull(text + 7, NULL, 10);
	return 0;
}

/*
 * From the auxiliary vector, which the kernel keeps: reading the executable may take as long as its file system likes. Types are
 * small numbers; pairs of 32-bit words that are taken for words of 64 bits have others.
 */
static int read_word_size(const struct process_info *info, bool *is_32bit)
{
	char text[4096];
	ssize_t length = read_small(info->tgid, "auxv", text, sizeof(text));

	*is_32bit = false;
	for (ssize_t at = 0; at + 16 <= length && !*is_32bit; at += 16) {
		__u64 type;

		memcpy(&type, text + at, sizeof(type));
		if (type == AT_NULL)
			break;
		*is_32bit = type > UINT32_MAX;
	}
	return length < 0 ? (int)length : 0;
}

int process_info_read(pid_t pid, struct process_info *result)
{
	struct process_stat stat;
	int error;

	memset(result, 0, sizeof(*result));
	error = read_thread_group(pid, &result->tgid);
	if (!error)
		error = read_stat(result->tgid, &stat);
	if (error)
		return error;
	result->parent = stat.parent;
	result->start_time = stat.start_time;
	memcpy(result->name, stat.name, sizeof(result->name));
	result->is_kernel_thread = stat.flags & FLAG_KERNEL_THREAD;
	result->is_zombie = stat.state == 'Z' || stat.state == 'X';
	error = read_command(result->tgid, &result->command);
	if (!error && !result->is_kernel_thread && !result->is_zombie)
		error = read_word_size(result, &result->is_32bit);
	/* the process may have ended since its state was read */
	if (error == -ESRCH && read_stat(result->tgid, &stat) == 0 && (stat.state == 'Z' || stat.state == 'X')) {
		result->is_zombie = true;
		error = 0;
	}
	if (error)
		process_info_free(result);
	return error;
}

void process_info_free(struct process_info *info)
{
	free(info->command);
	info->command = NULL;
}

int process_environment_read(pid_t pid, struct process_environment *result)
{
	char *text = malloc(ENVIRONMENT_MAX + 1), *at;
	ssize_t length = text ? read_small(pid, "environ", text, ENVIRONMENT_MAX + 1) : -ENOMEM;
	size_t count = 0;

	*result = (struct process_environment){ 0 };
	if (length < 0) {
		free(text);
		return (int)length;
	}
	result->truncated = length == ENVIRONMENT_MAX;
	for (ssize_t i = 0; i < length; i++)
		count += !text[i];
	result->variables = calloc(count + 1, sizeof(*result->variables));
	if (!result->variables) {
		free(text);
		return -ENOMEM;
	}
	result->text = text;
	/* One without its end, the last that was read, is none. */
	for (at = text; result->count < count; at += strlen(at) + 1)
		result->variables[result->count++] = at;
	return 0;
}

void process_environment_free(struct process_environment *environment)
{
	free(environment->text);
	free(environment->variables);
	*environment = (struct process_environment){ 0 };
}

void process_thread_name(pid_t tgid, pid_t tid, char name[16])
{
	char file[32], text[32];
	ssize_t length;

	name[0] = '\0';
	snprintf(file, sizeof(file), "task/%d/comm", (int)tid);
	length = read_small(tgid, file, text, sizeof(text));
	if (length <= 0)
		return;
	if (text[length - 1] == '\n')
		text[--length] = '\0';
	if (length > 15)
		length = 15;
	memcpy(name, text, (size_t)length);
	name[length] = '\0';
}

int process_each(int (*visit)(void *context, pid_t tgid), void *context)
{
	struct dirent *entry;
	int stop = 0;
	DIR *proc = opendir("/proc");

	if (!proc)
		return -errno;
	while (!stop && (entry = readdir(proc))) {
		struct process_stat stat;
		pid_t tgid;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		tgid = (pid_t)atoi(entry->d_name);
		if (tgid == getpid() || read_stat(tgid, &stat) || stat.flags & FLAG_KERNEL_THREAD ||
		    stat.state == 'Z' || stat.state == 'X')
			continue;
		stop = visit(context, tgid);
	}
	closedir(proc);
	return stop;
}

ssize_t process_read_memory(pid_t pid, __u64 address, void *buffer, size_t length)
{
	size_t done = 0;

	while (done < length) {
		__u64 at = address + done;
		struct iovec local = { (char *)buffer + done, length - done }, remote = { .iov_len = length - done };
		ssize_t got;

		memcpy(&remote.iov_base, &at, sizeof(at)); /* of the process, no pointer of ours */
		got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
		if (got <= 0)
			return done ? (ssize_t)done : got ? proc_error(errno) : -EFAULT;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* ---- usage ---- */

#define STATUS_MAX 16384 /* bytes: 1.5 KiB as a rule; what is read follows the list of groups, up to 11 bytes each */
#define SECOND 1000000000ull

/* From the beginning of an open file of /proc, terminated: its length, or -ESRCH when the process has ended. */
static ssize_t read_again(int file, char *text, size_t size)
{
	ssize_t length;

	do {
		length = pread(file, text, size - 1, 0);
	} while (length < 0 && errno == EINTR);
	if (length < 0)
		return errno == ESRCH ? -ESRCH : -EIO;
	text[length] = '\0';
	return length;
}

/* The process as it is now; it has not ended while threads of it run, even if the first one has. */
static int read_usage_stat(const struct usage_source *source, struct process_stat *stat)
{
	char text[PROCESS_STAT_MAX];
	ssize_t length = read_again(source->stat, text, sizeof(text));
	int error = length < 0 ? (int)length : process_stat_parse(text, stat);

	if (error)
		return error;
	return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1 ? -ESRCH : 0;
}

static int open_file(int folder, const char *name)
{
	int file = openat(folder, name, O_RDONLY | O_CLOEXEC);

	return file >= 0 ? file : errno == ENOENT ? -ESRCH : -errno;
}

/* Both files of the process of the folder, even if its PID has been reused. */
static int open_files(struct usage_source *source, int folder)
{
	source->stat = open_file(folder, "stat");
	source->status = open_file(folder, "status");
	return source->stat < 0 ? source->stat : source->status < 0 ? source->status : 0;
}

int usage_open(struct usage_source *source, pid_t pid, __u64 start_time)
{
	struct process_stat stat;
	char path[32];
	int folder, error;

	*source = (struct usage_source){ .stat = -1, .status = -1 };
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	error = open_files(source, folder);
	close(folder);
	if (!error && clock_getcpuclockid(pid, &source->clock))
		error = -ESRCH;
	if (!error)
		error = read_usage_stat(source, &stat);
	if (!error && start_time && stat.start_time != start_time)
		error = -ESRCH;
	if (error)
		usage_close(source);
	else
		source->start_time = stat.start_time;
	return error;
}

void usage_close(struct usage_source *source)
{
	if (source->stat >= 0)
		close(source->stat);
	if (source->status >= 0)
		close(source->status);
	source->stat = source->status = -1;
}

/* Bytes of a line such as "VmRSS:	    1234 kB". Names of processes cannot hold a line's end there. */
static bool read_bytes(const char *status, const char *name, __u64 *bytes)
{
	const char *line = strstr(status, name);
	unsigned long long kilobytes;

	if (!line || sscanf(line + strlen(name), "%llu kB", &kilobytes) != 1)
		return false;
	*bytes = kilobytes * 1024;
	return true;
}

static bool read_memory(const struct usage_source *source, struct process_usage *result)
{
	char text[STATUS_MAX];
	ssize_t length = read_again(source->status, text, sizeof(text));

	/* A number at the end of a full buffer may have been cut. */
	return length > 0 && length < STATUS_MAX - 1 && read_bytes(text, "\nVmHWM:", &result->peak) &&
	       read_bytes(text, "\nVmRSS:", &result->resident) && read_bytes(text, "\nRssAnon:", &result->anonymous) &&
	       read_bytes(text, "\nVmSwap:", &result->swap);
}

int usage_read(const struct usage_source *source, unsigned int wanted, struct process_usage *result)
{
	__u64 tick = SECOND / (__u64)sysconf(_SC_CLK_TCK);
	struct process_stat stat;
	struct timespec cpu;
	int error;

	*result = (struct process_usage){ .time = clock_monotonic() };
	/* By PID; that the process still exists afterwards proves that it was this one. */
	if (wanted & USAGE_CPU && !clock_gettime(source->clock, &cpu)) {
		result->cpu = (__u64)cpu.tv_sec * SECOND + (__u64)cpu.tv_nsec;
		result->have |= USAGE_CPU;
	}
	error = read_usage_stat(source, &stat);
	if (error)
		return error;
	result->threads = stat.threads;
	if (result->have & USAGE_CPU) {
		result->user = stat.user_ticks * tick;
		result->system = stat.system_ticks * tick;
	}
	if (wanted & USAGE_MEMORY && read_memory(source, result))
		result->have |= USAGE_MEMORY;
	return 0;
}
