/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rundir: makes and checks the runtime folder. A claim is a lock on the folder itself: it ends with
 * the process, however that ends, so nothing is ever stale.
 */
#include "app/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Our user id as the machine knows it: outside of the user namespace that we may be in. */
static unsigned long outer_uid(void)
{
	unsigned long uid = geteuid(), inside, outside, count, found = uid;
	char line[128], *at;
	FILE *map = fopen("/proc/self/uid_map", "re");

	if (!map)
		return uid;
	while (fgets(line, sizeof(line), map)) {
		inside = strtoul(line, &at, 10);
		outside = strtoul(at, &at, 10);
		count = strtoul(at, NULL, 10);
		if (uid >= inside && uid - inside < count)
			found = outside + (uid - inside);
	}
	fclose(map);
	return found;
}

static int folder_check(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return err_set(err, errno, "cannot look at %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "%s is not a folder; remove it", path);
	if (st.st_uid != geteuid())
		return err_set(err, EPERM,
			"%s belongs to user %u, not to you; remove it, or set "
			"XDG_RUNTIME_DIR to a folder of your own",
			path, st.st_uid);
	if (st.st_mode & 022)
		return err_set(err, EPERM, "others may write to %s; chmod 700 %s", path, path);
	return 0;
}

static int folder_make(const char *path, struct err *err)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return err_set(err, errno,
			"cannot make the runtime folder %s: %s; set "
			"XDG_RUNTIME_DIR to a folder of your own",
			path, strerror(errno));
	return folder_check(path, err);
}

/* The folder that has those of all our networks. */
static int base_path(char base[RUNDIR_PATH - 64], struct err *err)
{
	const size_t size = RUNDIR_PATH - 64;
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	unsigned long uid = outer_uid();
	int n;

	if (xdg && *xdg == '/')
		n = snprintf(base, size, "%s/weft", xdg);
	else if (uid == 0)
		n = snprintf(base, size, "/run/weft");
	else
		n = snprintf(base, size, "/tmp/weft-%lu", uid);
	if (n >= (int)size)
		return err_set(err, ENAMETOOLONG, "XDG_RUNTIME_DIR is too long: %d bytes", n);
	return 0;
}

int rundir_path(char path[RUNDIR_PATH], const char *net, bool make, struct err *err)
{
	char base[RUNDIR_PATH - 64];
	int r = base_path(base, err);

	if (r)
		return r;
	snprintf(path, RUNDIR_PATH, "%s/%.32s", base, net);
	if (!make)
		return 0;
	r = folder_make(base, err);
	return r ? r : folder_make(path, err);
}

void rundir_each(void (*each)(void *ctx, const char *net), void *ctx)
{
	char base[RUNDIR_PATH - 64];
	struct dirent *e;
	DIR *d;

	if (base_path(base, NULL) || folder_check(base, NULL) || !(d = opendir(base)))
		return;
	while ((e = readdir(d))) {
		if (e->d_name[0] != '.')
			each(ctx, e->d_name);
	}
	closedir(d);
}

char *rundir_origin(char text[RUNDIR_ORIGIN], const char *net)
{
	FILE *f = fopen("/etc/machine-id", "re");
	char machine[33] = "";

	if (f) {
		if (!fgets(machine, sizeof(machine), f))
			machine[0] = 0;
		fclose(f);
	}
	snprintf(text, RUNDIR_ORIGIN, "%s %lu %.32s", machine, outer_uid(), net);
	return text;
}

/* The folder that we have locked is still the one of that name. */
static bool folder_same(const char *path, int fd)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(path, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

int rundir_claim(char path[RUNDIR_PATH], const char *net, int *lock, struct err *err)
{
	int fd, r = 0;

	/* Another may end, and remove a folder, between our making and locking it. */
	for (unsigned tries = 0; tries < 10; tries++) {
		r = rundir_path(path, net, true, err);
		if (r == -ENOENT)
			continue;
		if (r)
			return r;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			close(fd);
			return err_set(err, EBUSY,
				"network '%s' is running already; weft stop -n %s ends it, weft "
				"run "
				"-n OTHER starts another",
				net, net);
		}
		if (folder_same(path, fd)) {
			*lock = fd;
			return 0;
		}
		close(fd);
	}
	return r ? r : err_set(err, EAGAIN, "cannot claim %s; try again", path);
}

void rundir_remove(const char *path)
{
	char base[RUNDIR_PATH];
	char *slash;

	rmdir(path);
	/* The folder above is ours, too; other networks that are in it keep it. */
	snprintf(base, sizeof(base), "%s", path);
	slash = strrchr(base, '/');
	if (slash) {
		*slash = 0;
		rmdir(base);
	}
}

void rundir_release(const char *path, int lock)
{
	rundir_remove(path);
	close(lock);
}
