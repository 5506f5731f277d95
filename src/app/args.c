/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args: the exact arguments that plug a guest into a vhost-user port, for each front-end in a
 * table.
 */
#include <errno.h>
#include <string.h>

#include "app/cmd.h"
#include "app/words.h"
#include "app/show.h"

/* For the shell: as it is if harmless, else in single quotes. */
static void put_quoted(FILE *f, const char *s)
{
	static const char harmless[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"_-./:=,@+";

	if (*s && strspn(s, harmless) == strlen(s)) {
		fputs(s, f);
		return;
	}
	fputc('\'', f);
	for (; *s; s++)
		fputs(*s == '\'' ? "'\\''" : (const char[]){*s, 0}, f);
	fputc('\'', f);
}

/* A path as QEMU takes it inside an option: commas doubled. */
static void path_qemu(char out[2 * SPEC_PATH], const char *path)
{
	for (; *path; path++) {
		*out++ = *path;
		if (*path == ',')
			*out++ = ',';
	}
	*out = 0;
}

/* A front-end that is told an MTU insists on the feature. */
static bool args_mtu(const struct spec *s)
{
	return s->mtu != 1500 && !(s->off & VNET_BIT(MTU));
}

static int args_qemu(struct cmd_call *call, const struct spec *s)
{
	char path[2 * SPEC_PATH], mac[18], arg[2 * SPEC_PATH + 100];
	FILE *f = call->out;

	path_qemu(path, s->path);
	snprintf(arg, sizeof(arg), "socket,id=chr-%s,path=%s,%s", s->name, path,
		s->server ? "reconnect=1" : "server=on");
	fprintf(f, "-m 1G -object memory-backend-memfd,id=mem0,size=1G,share=on "
		   "-machine q35,memory-backend=mem0 -chardev ");
	put_quoted(f, arg);
	fprintf(f,
		" -netdev vhost-user,id=net-%s,chardev=chr-%s"
		" -device virtio-net-pci,netdev=net-%s,mac=%s",
		s->name, s->name, s->name, show_mac(s->mac, mac));
	if (args_mtu(s))
		fprintf(f, ",host_mtu=%u", s->mtu);
	fputc('\n', f);
	return CMD_DONE;
}

static int args_uml(struct cmd_call *call, const struct spec *s)
{
	char arg[SPEC_PATH + 40];

	if (!s->server) {
		err_set(&call->err, EINVAL,
			"args: User-Mode Linux only connects, it cannot listen; port '%s' has "
			"server=off",
			s->name);
		return CMD_MISTAKE;
	}
	if (strchr(s->path, ':')) {
		err_set(&call->err, EINVAL,
			"args: User-Mode Linux takes no path with a colon: %.150s; give port '%s' "
			"another socket",
			s->path, s->name);
		return CMD_MISTAKE;
	}
	/* without a number of its own each device of a guest gets the next one */
	snprintf(arg, sizeof(arg), "virtio_uml.device=%s:1", s->path);
	fputs("mem=1G ", call->out);
	put_quoted(call->out, arg);
	fputc('\n', call->out);
	err_set(&call->err, 0,
		"its memory must be shareable: TMPDIR must be on a tmpfs, such as "
		"TMPDIR=/dev/shm");
	return CMD_DONE;
}

static int args_cloud_hypervisor(struct cmd_call *call, const struct spec *s)
{
	char mac[18], arg[SPEC_PATH + 100];

	snprintf(arg, sizeof(arg), "vhost_user=true,socket=%s,mac=%s%s", s->path,
		show_mac(s->mac, mac), s->server ? "" : ",vhost_mode=server");
	fputs("--memory size=1G,shared=on --net ", call->out);
	put_quoted(call->out, arg);
	fputc('\n', call->out);
	return CMD_DONE;
}

static void put_xml(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '&')
			fputs("&amp;", f);
		else if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '\'')
			fputs("&apos;", f);
		else
			fputc(*s, f);
	}
}

static int args_libvirt(struct cmd_call *call, const struct spec *s)
{
	FILE *f = call->out;
	char mac[18];

	fputs("<memoryBacking>\n"
	      "  <source type='memfd'/>\n"
	      "  <access mode='shared'/>\n"
	      "</memoryBacking>\n"
	      "<interface type='vhostuser'>\n",
		f);
	fprintf(f, "  <mac address='%s'/>\n  <source type='unix' path='", show_mac(s->mac, mac));
	put_xml(f, s->path);
	fprintf(f, "' mode='%s'%s\n", s->server ? "client" : "server", s->server ? ">" : "/>");
	if (s->server)
		fputs("    <reconnect enabled='yes' timeout='1'/>\n  </source>\n", f);
	fputs("  <model type='virtio'/>\n", f);
	if (args_mtu(s))
		fprintf(f, "  <mtu size='%u'/>\n", s->mtu);
	fputs("</interface>\n", f);
	return CMD_DONE;
}

static const struct {
	const char *name;
	int (*print)(struct cmd_call *, const struct spec *);
} fronts[] = {
	{"qemu", args_qemu},
	{"uml", args_uml},
	{"cloud-hypervisor", args_cloud_hypervisor},
	{"libvirt", args_libvirt},
};
#define N_FRONTS (sizeof(fronts) / sizeof(fronts[0]))

int word_args(struct cmd_call *call)
{
	const char *known[N_FRONTS];
	struct net_port *p;
	char hint[160];

	for (unsigned i = 0; i < N_FRONTS; i++) {
		known[i] = fronts[i].name;
		if (strcmp(call->arg[0], fronts[i].name) != 0)
			continue;
		p = net_find(call->net, call->arg[1], &call->err);
		if (!p)
			return CMD_MISTAKE;
		if (p->kind == SPEC_VHOST_USER)
			return fronts[i].print(call, &p->spec);
		err_set(&call->err, EINVAL,
			"args: port '%s' is a %s: only a vhost-user port takes a guest by "
			"arguments",
			p->port->name, spec_kind_name(p->kind));
		return CMD_MISTAKE;
	}
	err_set(&call->err, EINVAL, "args: '%.60s' is not known%s", call->arg[0],
		words_hint(hint, sizeof(hint), call->arg[0], known, N_FRONTS));
	return CMD_MISTAKE;
}
