// SPDX-License-Identifier: MIT
// Files on POSIX.

#define _POSIX_C_SOURCE 200809L

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A FIFO or socket may block its writer, and cannot be read back: ENOTSUP. O_NONBLOCK keeps open itself from waiting
// for a reader of a FIFO; Linux ignores it for regular files.
static int file_open(void *user, const char *path, nbi_file *file) {
    (void)user;
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int descriptor = open(path, flags, 0644);
    if (descriptor < 0) return errno == ENXIO ? ENOTSUP : errno; // ENXIO: a FIFO without a reader, or a socket
    struct stat status;
    int error = fstat(descriptor, &status) == 0 ? 0 : errno;
    if (error == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))) error = ENOTSUP;
    if (error != 0) {
        close(descriptor);
        return error;
    }
    file->os = (intptr_t)descriptor + 1;
    return 0;
}

static int file_write(void *user, nbi_file file, const void *bytes, size_t size_bytes) {
    (void)user;
    const unsigned char *at = bytes;
    while (size_bytes != 0) {
        ssize_t written = write((int)(file.os - 1), at, size_bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        if (written == 0) return EIO;
        at += written;
        size_bytes -= (size_t)written;
    }
    return 0;
}

// What cannot be synced at all, such as a pipe, needs none.
static int file_sync(void *user, nbi_file file) {
    (void)user;
    if (fsync((int)(file.os - 1)) == 0 || errno == EINVAL || errno == EROFS) return 0;
    return errno;
}

static int file_close(void *user, nbi_file file) {
    (void)user;
    // The descriptor is gone even where a signal came between.
    return close((int)(file.os - 1)) == 0 || errno == EINTR ? 0 : errno;
}

static int file_rename(void *user, const char *from, const char *to) {
    (void)user;
    return rename(from, to) == 0 ? 0 : errno;
}

static int file_sync_folder(void *user, const char *path) {
    (void)user;
    const char *slash = strrchr(path, '/');
    char folder[4096];
    size_t length = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    if (length >= sizeof folder) return ENAMETOOLONG;
    memcpy(folder, slash == NULL ? "." : path, length);
    folder[length] = '\0';
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    int error = fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
    close(descriptor);
    return error;
}

static int file_remove(void *user, const char *path) {
    (void)user;
    return unlink(path) == 0 ? 0 : errno;
}

nbi_file_ops nbi_file_ops_default(void) {
    return (nbi_file_ops){.open = file_open,
                          .write = file_write,
                          .sync = file_sync,
                          .close = file_close,
                          .rename = file_rename,
                          .sync_folder = file_sync_folder,
                          .remove = file_remove};
}

int nbi_file_size(const char *path, uint64_t *size_bytes) {
    struct stat status;
    if (stat(path, &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (!S_ISREG(status.st_mode)) return ENOTSUP;
    *size_bytes = (uint64_t)status.st_size;
    return 0;
}

int nbi_file_read(const char *path, void *bytes, size_t size_bytes, size_t *read_bytes) {
    // Between nbi_file_size and this open the path may have become a FIFO.
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return errno;
    unsigned char *at = bytes;
    size_t done = 0;
    int error = 0;
    while (done < size_bytes) {
        ssize_t count = read(descriptor, at + done, size_bytes - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) error = errno;
        if (count <= 0) break;
        done += (size_t)count;
    }
    close(descriptor);
    *read_bytes = done;
    return error;
}

void nbi_file_error_text(int error, char *text, size_t size_bytes) {
    if (error == ENOTSUP)
        snprintf(text, size_bytes, "not a regular file");
    else if (strerror_r(error, text, size_bytes) != 0)
        snprintf(text, size_bytes, "error %d", error);
}
