/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preloaded library that makes one allocation of a program fail.
 *
 * Only calls that come from chosen objects count (by the return address), so that the program's own
 * code is swept and not the libraries below it, whose faults are not ours to mend:
 *
 *   FAILALLOC_OBJECTS=a,b   parts of the names of shared objects whose calls count; the program itself
 *                           always does
 *   FAILALLOC_EXE=name      act in the process of that program file only
 *   FAILALLOC_AT=N          the N-th counted call (1 is the first) fails with ENOMEM; 0: none
 *   FAILALLOC_AFTER=1       every counted call after it fails too
 *   FAILALLOC_LOG=FILE      append a line "function object+offset" for each counted call
 *
 * Whatever returns NULL, MAP_FAILED or EAGAIN for want of memory is here, not malloc alone.
 */
/* mmap and mmap64, fopen and fopen64 are told apart here. */
#undef _FILE_OFFSET_BITS

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_RANGES 32

struct range {
	uintptr_t start, end, base;
	char name[32];
};

static struct range ranges[MAX_RANGES];
static unsigned num_ranges;
static const char *objects;
static unsigned long fail_at;
static bool fail_after;
static int log_fd = -1;
static atomic_ulong calls;

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool chosen(const char *name)
{
	const char *at = objects;

	if (!*name) /* the program itself */
		return true;
	while (at && *at) {
		size_t n = strcspn(at, ",");
		char word[64];

		if (n && n < sizeof(word)) {
			memcpy(word, at, n);
			word[n] = 0;
			if (strstr(last_part(name), word))
				return true;
		}
		at += n;
		at += *at == ',';
	}
	return false;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
	if (!chosen(info->dlpi_name))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum && num_ranges < MAX_RANGES; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		struct range *range = &ranges[num_ranges];

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		range->base = info->dlpi_addr;
		range->start = info->dlpi_addr + header->p_vaddr;
		range->end = range->start + header->p_memsz;
		snprintf(range->name, sizeof(range->name), "%s",
			 *info->dlpi_name ? last_part(info->dlpi_name) : "program");
		num_ranges++;
	}
	return 0;
}

/* argv[0] would not do: ibmr-soft0 goes by the name of ibmr. */
static bool is_program(const char *name)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		abort();
	path[n] = 0;
	return !strcmp(last_part(path), name);
}

__attribute__((constructor)) static void start(void)
{
	const char *exe = getenv("FAILALLOC_EXE");
	const char *at = getenv("FAILALLOC_AT");
	const char *log = getenv("FAILALLOC_LOG");

	if (exe && !is_program(exe))
		return;
	objects = getenv("FAILALLOC_OBJECTS");
	fail_at = at ? strtoul(at, NULL, 10) : 0;
	fail_after = getenv("FAILALLOC_AFTER") != NULL;
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dl_iterate_phdr(add_object, NULL);
}

static void write_log(const char *function, const struct range *range, uintptr_t address)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%s %s+0x%lx\n", function, range->name,
			 (unsigned long)(address - range->base));

	if (n > 0 && write(log_fd, line, (size_t)n) != n)
		abort();
}

/* Is this call to fail? */
static bool fails(const char *function, const void *caller)
{
	uintptr_t address = (uintptr_t)caller;

	for (unsigned i = 0; i < num_ranges; i++) {
		unsigned long n;

		if (address < ranges[i].start || address >= ranges[i].end)
			continue;
		n = atomic_fetch_add(&calls, 1) + 1;
		if (log_fd >= 0)
			write_log(function, &ranges[i], address);
		if (!fail_at || n < fail_at || (n > fail_at && !fail_after))
			return false;
		errno = ENOMEM;
		return true;
	}
	return false;
}

#define CALLER __builtin_return_address(0)

/* The function below this library; found once, and dlsym itself may allocate. */
#define NEXT(function)                       \
	static __typeof__(&(function)) next; \
	if (!next)                           \
	next = (__typeof__(&(function)))dlsym(RTLD_NEXT, #function)

void *malloc(size_t size)
{
	NEXT(malloc);
	return fails("malloc", CALLER) ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
	NEXT(calloc);
	return fails("calloc", CALLER) ? NULL : next(count, size);
}

void *realloc(void *old, size_t size)
{
	NEXT(realloc);
	return fails("realloc", CALLER) ? NULL : next(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	NEXT(reallocarray);
	return fails("reallocarray", CALLER) ? NULL : next(old, count, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	NEXT(aligned_alloc);
	return fails("aligned_alloc", CALLER) ? NULL : next(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	NEXT(posix_memalign);
	return fails("posix_memalign", CALLER) ? ENOMEM : next(ret, alignment, size);
}

char *strdup(const char *text)
{
	NEXT(strdup);
	return fails("strdup", CALLER) ? NULL : next(text);
}

char *strndup(const char *text, size_t size)
{
	NEXT(strndup);
	return fails("strndup", CALLER) ? NULL : next(text, size);
}

char *realpath(const char *path, char *resolved)
{
	NEXT(realpath);
	return fails("realpath", CALLER) ? NULL : next(path, resolved);
}

int vasprintf(char **ret, const char *format, va_list args)
{
	NEXT(vasprintf);
	return fails("vasprintf", CALLER) ? -1 : next(ret, format, args);
}

int asprintf(char **ret, const char *format, ...)
{
	NEXT(vasprintf);
	va_list args;
	int n;

	if (fails("asprintf", CALLER))
		return -1;
	va_start(args, format);
	n = next(ret, format, args);
	va_end(args);
	return n;
}

/* What -D_FORTIFY_SOURCE makes of the two above. */
int __vasprintf_chk(char **ret, int flag, const char *format, va_list args);
int __vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
	NEXT(vasprintf);
	return fails("vasprintf", CALLER) ? -1 : next(ret, format, args);
}

int __asprintf_chk(char **ret, int flag, const char *format, ...);
int __asprintf_chk(char **ret, int flag, const char *format, ...)
{
	NEXT(vasprintf);
	va_list args;
	int n;

	if (fails("asprintf", CALLER))
		return -1;
	va_start(args, format);
	n = next(ret, format, args);
	va_end(args);
	return n;
}

FILE *fopen(const char *path, const char *mode)
{
	NEXT(fopen);
	return fails("fopen", CALLER) ? NULL : next(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	NEXT(fopen64);
	return fails("fopen", CALLER) ? NULL : next(path, mode);
}

FILE *fdopen(int fd, const char *mode)
{
	NEXT(fdopen);
	return fails("fdopen", CALLER) ? NULL : next(fd, mode);
}

FILE *fmemopen(void *buf, size_t size, const char *mode)
{
	NEXT(fmemopen);
	return fails("fmemopen", CALLER) ? NULL : next(buf, size, mode);
}

FILE *open_memstream(char **ret, size_t *ret_size)
{
	NEXT(open_memstream);
	return fails("open_memstream", CALLER) ? NULL : next(ret, ret_size);
}

ssize_t getdelim(char **line, size_t *room, int delimiter, FILE *file)
{
	NEXT(getdelim);
	return fails("getdelim", CALLER) ? -1 : next(line, room, delimiter, file);
}

ssize_t getline(char **line, size_t *room, FILE *file)
{
	NEXT(getline);
	return fails("getline", CALLER) ? -1 : next(line, room, file);
}

DIR *opendir(const char *path)
{
	NEXT(opendir);
	return fails("opendir", CALLER) ? NULL : next(path);
}

DIR *fdopendir(int fd)
{
	NEXT(fdopendir);
	return fails("fdopendir", CALLER) ? NULL : next(fd);
}

int memfd_create(const char *name, unsigned flags)
{
	NEXT(memfd_create);
	return fails("memfd_create", CALLER) ? -1 : next(name, flags);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	NEXT(mmap);
	return fails("mmap", CALLER) ? MAP_FAILED
				     : next(address, size, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset)
{
	NEXT(mmap64);
	return fails("mmap", CALLER) ? MAP_FAILED
				     : next(address, size, protection, flags, fd, offset);
}

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	NEXT(mremap);
	va_list args;
	void *address;

	va_start(args, flags);
	address = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
	va_end(args);
	return fails("mremap", CALLER) ? MAP_FAILED : next(old, old_size, size, flags, address);
}

int pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	NEXT(pthread_create);
	return fails("pthread_create", CALLER) ? EAGAIN : next(ret, attr, run, arg);
}
