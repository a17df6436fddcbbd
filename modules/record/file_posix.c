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

static int file_open(void *user, const char *path, nbi_file *file) {
    (void)user;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0) return errno;
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
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
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
    if (strerror_r(error, text, size_bytes) != 0) snprintf(text, size_bytes, "error %d", error);
}
