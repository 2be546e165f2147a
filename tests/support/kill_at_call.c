// Preloaded into a process: kills it before the call of number KILL_AT_CALL that changes a file or a folder.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void count(void) {
    static atomic_long calls;
    const char *limit = getenv("KILL_AT_CALL");
    if (limit && atomic_fetch_add(&calls, 1) + 1 == atol(limit)) kill(getpid(), SIGKILL);
}

#define NEXT(name) __typeof__(name) *next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int rename(const char *from, const char *to) { NEXT(rename); count(); return next(from, to); }
int unlink(const char *path) { NEXT(unlink); count(); return next(path); }
int unlinkat(int dir, const char *path, int flags) { NEXT(unlinkat); count(); return next(dir, path, flags); }
int rmdir(const char *path) { NEXT(rmdir); count(); return next(path); }
int mkdir(const char *path, mode_t mode) { NEXT(mkdir); count(); return next(path, mode); }
int fsync(int file) { NEXT(fsync); count(); return next(file); }
int fdatasync(int file) { NEXT(fdatasync); count(); return next(file); }
int ftruncate64(int file, off64_t size) { NEXT(ftruncate64); count(); return next(file, size); }

// Files only: pipes and the threads' own descriptors change nothing in a folder.
ssize_t write(int file, const void *bytes, size_t size) {
    NEXT(write);
    struct stat meta;
    if (fstat(file, &meta) == 0 && S_ISREG(meta.st_mode)) count();
    return next(file, bytes, size);
}

int open64(const char *path, int flags, ...) {
    NEXT(open64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (flags & O_CREAT) count();
    return next(path, flags, mode);
}
