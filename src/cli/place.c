/* SPDX-License-Identifier: BSD-2-Clause */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli.h"

/* ---- the path ------------------------------------------------------------------------- */

static int place_fail(struct fail *f, const char *cause, int number, const char *call,
		      const char *path, const char *why)
{
	int rc = fail_sys(f, FAIL_SESSION, call, number, "%s: %s", path, why);

	f->cause = cause;
	return rc;
}

/* The same where no call failed: we refuse. */
static int place_refuse(struct fail *f, const char *cause, int number, const char *path,
			const char *why)
{
	fail_set(f, FAIL_SESSION, "%s: %s", path, why);
	f->cause = cause;
	f->err = number;
	return -number;
}

static void hint_start(const struct place *p, struct fail *f)
{
	fail_hint(f, "ibmr session start --device soft0%s%s starts one on the software device",
		  p->asked ? " --socket " : "", p->asked ? p->asked : "");
}

/* No socket, no folder that it could be in, or nobody who takes a connection. */
static int nobody(const struct place *p, int number, const char *call, struct fail *f)
{
	int rc = place_fail(f, "not_running", number, call, p->path, "no session listens there");

	hint_start(p, f);
	return rc;
}

/* Ours, a folder and no link to one, closed to others. */
static int check_folder(const char *path, struct fail *f)
{
	struct stat st;

	if (lstat(path, &st))
		return place_fail(f, "folder", errno, "lstat", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return place_refuse(f, "folder", ENOTDIR, path, "not a folder");
	if (st.st_uid != geteuid())
		return place_refuse(f, "not_owner", EPERM, path, "belongs to another user");
	if (st.st_mode & 077)
		return place_refuse(f, "folder", EPERM, path, "others may enter it");
	return 0;
}

/* $XDG_RUNTIME_DIR counts only when it is this user's: su and sudo hand on another's. */
static bool runtime_folder(char *buf, size_t size)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	if (!dir || dir[0] != '/' || stat(dir, &st) || !S_ISDIR(st.st_mode) ||
	    st.st_uid != geteuid())
		return false;
	n = snprintf(buf, size, "%s/ibmr", dir);
	return n > 0 && (size_t)n < size;
}

static int default_path(bool make, struct place *p, struct fail *f)
{
	char folder[PATH_MAX - 32];

	if (!runtime_folder(folder, sizeof(folder)))
		snprintf(folder, sizeof(folder), "/tmp/ibmr-%u", (unsigned)geteuid());
	snprintf(p->path, sizeof(p->path), "%s/session.sock", folder);
	if (make && mkdir(folder, 0700) && errno != EEXIST)
		return place_fail(f, "folder", errno, "mkdir", folder, strerror(errno));
	if (!make && access(folder, F_OK) && errno == ENOENT)
		return nobody(p, ENOENT, "access", f);
	return check_folder(folder, f);
}

static int absolute_path(const char *socket, char *buf, size_t size, struct fail *f)
{
	char cwd[PATH_MAX];
	int n;

	if (socket[0] == '/') {
		n = snprintf(buf, size, "%s", socket);
	} else {
		if (!getcwd(cwd, sizeof(cwd)))
			return place_fail(f, "folder", errno, "getcwd", socket, strerror(errno));
		n = snprintf(buf, size, "%s/%s", cwd, socket);
	}
	if (n < 0 || (size_t)n >= size)
		return place_refuse(f, "folder", ENAMETOOLONG, socket, "the name is too long");
	return 0;
}

int place_open(const char *socket, bool make, struct place *ret_place, struct fail *f)
{
	struct place *p = ret_place;
	char *slash;
	int rc;

	*p = (struct place){ .asked = socket, .dir = -1, .lock = -1, .listener = -1 };
	rc = socket ? absolute_path(socket, p->path, sizeof(p->path), f) : default_path(make, p, f);
	if (rc)
		return rc;
	slash = strrchr(p->path, '/');
	*slash = '\0';
	p->base = slash + 1;
	p->dir = open(*p->path ? p->path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	rc = errno;
	*slash = '/';
	if (p->dir < 0 && rc == ENOENT && !make)
		return nobody(p, rc, "open", f);
	if (p->dir < 0)
		return place_fail(f, rc == EACCES ? "not_owner" : "folder", rc, "open", p->path,
				  strerror(rc));
	if (!*p->base || strlen(p->base) > NAME_MAX - 8) {
		close(p->dir);
		return place_refuse(f, "folder", EINVAL, p->path, "not a name for a socket");
	}
	return 0;
}

/* An address holds about a hundred bytes; a longer path goes by the folder's descriptor. */
static int address(const struct place *p, struct sockaddr_un *ret_addr, socklen_t *ret_len)
{
	int n;

	memset(ret_addr, 0, sizeof(*ret_addr));
	ret_addr->sun_family = AF_UNIX;
	n = snprintf(ret_addr->sun_path, sizeof(ret_addr->sun_path), "%s", p->path);
	if (n < 0 || (size_t)n >= sizeof(ret_addr->sun_path))
		n = snprintf(ret_addr->sun_path, sizeof(ret_addr->sun_path), "/proc/self/fd/%d/%s",
			     p->dir, p->base);
	if (n < 0 || (size_t)n >= sizeof(ret_addr->sun_path))
		return -ENAMETOOLONG;
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
	return 0;
}

/* ---- listening --------------------------------------------------------------------------- */

static void lock_name(const struct place *p, char buf[NAME_MAX + 1])
{
	snprintf(buf, NAME_MAX + 1, "%s.lock", p->base);
}

static int running(const struct place *p, struct fail *f)
{
	place_refuse(f, "running", EADDRINUSE, p->path, "a session is running there");
	if (faccessat(p->dir, p->base, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		fail_hint(f,
			  "it is just starting, or its socket was removed: fuser %s.lock names the "
			  "process to end",
			  p->path);
	else
		fail_hint(f, "ibmr session stop ends it; --socket names another place");
	return -EADDRINUSE;
}

/* The file may be removed by the one who held it between our open and our lock: then again. */
int place_lock(struct place *place, struct fail *f)
{
	char name[NAME_MAX + 1];
	struct stat ours, there;
	int fd;

	lock_name(place, name);
	for (;;) {
		fd = openat(place->dir, name,
			    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
			    0600);
		if (fd < 0)
			return place_fail(f, "folder", errno, "open", place->path, strerror(errno));
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			int number = errno;

			close(fd);
			if (number == EWOULDBLOCK)
				return running(place, f);
			return place_fail(f, "folder", number, "flock", place->path,
					  strerror(number));
		}
		if (!fstat(fd, &ours) && !fstatat(place->dir, name, &there, AT_SYMLINK_NOFOLLOW) &&
		    ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
			place->lock = fd;
			return 0;
		}
		close(fd);
	}
}

/* With the lock, a socket that is there belongs to nobody any more. */
static int remove_stale(const struct place *p, struct fail *f)
{
	struct stat st;

	if (fstatat(p->dir, p->base, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0
				       : place_fail(f, "folder", errno, "fstatat", p->path,
						    strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return place_refuse(f, "not_a_socket", EEXIST, p->path,
				    "there is something that is no socket");
	if (st.st_uid != geteuid())
		return place_refuse(f, "not_owner", EPERM, p->path,
				    "the socket belongs to another user");
	if (unlinkat(p->dir, p->base, 0) && errno != ENOENT)
		return place_fail(f, "folder", errno, "unlink", p->path, strerror(errno));
	return 0;
}

static int bind_socket(struct place *p, struct fail *f)
{
	struct sockaddr_un addr;
	socklen_t len = 0;
	mode_t mask;
	int rc, fd;

	rc = address(p, &addr, &len);
	if (rc)
		return place_refuse(f, "folder", -rc, p->path, "the name is too long");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return place_fail(f, "folder", errno, "socket", p->path, strerror(errno));
	mask = umask(0177);
	rc = bind(fd, (struct sockaddr *)&addr, len) ? errno : 0;
	umask(mask);
	if (!rc && listen(fd, SOMAXCONN))
		rc = errno;
	if (rc) {
		close(fd);
		return place_fail(f, "folder", rc, "bind", p->path, strerror(rc));
	}
	p->listener = fd;
	return 0;
}

int place_listen(struct place *place, struct fail *f)
{
	int rc;

	rc = remove_stale(place, f);
	if (!rc)
		rc = bind_socket(place, f);
	if (!rc && ftruncate(place->lock, 0))
		rc = place_fail(f, "folder", errno, "ftruncate", place->path, strerror(errno));
	return rc;
}

void place_note(struct place *place, const char *text)
{
	size_t len = strlen(text);

	place->noted = place->lock >= 0 && pwrite(place->lock, text, len, 0) == (ssize_t)len;
	if (place->noted)
		unlinkat(place->dir, place->base, 0);
}

void place_close(struct place *place)
{
	char name[NAME_MAX + 1];

	if (place->listener >= 0) {
		unlinkat(place->dir, place->base, 0);
		close(place->listener);
	}
	if (place->lock >= 0) {
		lock_name(place, name);
		if (!place->noted)
			unlinkat(place->dir, name, 0);
		close(place->lock);
	}
	if (place->dir >= 0)
		close(place->dir);
	place->dir = place->lock = place->listener = -1;
}

/* ---- connecting ----------------------------------------------------------------------------- */

/* What the last session of this place left to say; our own files are believed only. */
static bool read_note(const struct place *p, char *buf, size_t size)
{
	char name[NAME_MAX + 1];
	struct stat st;
	ssize_t n = -1;
	int fd;

	lock_name(p, name);
	fd = openat(p->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static int not_running(const struct place *p, int number, const char *call, struct fail *f)
{
	char note[256];

	if (read_note(p, note, sizeof(note))) {
		place_refuse(f, "device_gone", number, p->path, note);
		hint_start(p, f);
		return -number;
	}
	return nobody(p, number, call, f);
}

static int check_owner(const struct place *p, struct fail *f)
{
	struct stat st;

	if (fstatat(p->dir, p->base, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno == ENOENT)
			return not_running(p, ENOENT, "fstatat", f);
		return place_fail(f, errno == EACCES ? "not_owner" : "folder", errno, "fstatat",
				  p->path, strerror(errno));
	}
	if (!S_ISSOCK(st.st_mode))
		return place_refuse(f, "not_a_socket", ENOTSOCK, p->path, "not a socket");
	if (st.st_uid != geteuid())
		return place_refuse(f, "not_owner", EPERM, p->path,
				    "the session is another user's");
	return 0;
}

static int check_peer(const struct place *p, int fd, struct fail *f)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return place_fail(f, "folder", errno, "getsockopt", p->path, strerror(errno));
	if (peer.uid != geteuid())
		return place_refuse(f, "not_owner", EPERM, p->path,
				    "what listens there is another user's");
	return 0;
}

static int connect_socket(const struct place *p, int fd, struct fail *f)
{
	const struct timeval most = { 10, 0 }; /* a backlog that nobody takes from */
	struct sockaddr_un addr;
	socklen_t len = 0;
	int rc;

	rc = address(p, &addr, &len);
	if (rc)
		return place_refuse(f, "folder", -rc, p->path, "the name is too long");
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	while (connect(fd, (struct sockaddr *)&addr, len)) {
		if (errno == EINTR && signals_check(f))
			return -EINTR;
		if (errno == EINTR)
			continue;
		if (errno == ECONNREFUSED || errno == ENOENT)
			return not_running(p, errno, "connect", f);
		return place_fail(f, errno == EACCES ? "not_owner" : "busy", errno, "connect",
				  p->path, strerror(errno));
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return place_fail(f, "folder", errno, "fcntl", p->path, strerror(errno));
	return check_peer(p, fd, f);
}

int place_connect(const struct place *place, int *ret_fd, struct fail *f)
{
	int rc, fd;

	rc = check_owner(place, f);
	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return place_fail(f, "folder", errno, "socket", place->path, strerror(errno));
	rc = connect_socket(place, fd, f);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}
