/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args: the exact arguments that plug a guest into vhost-user ports, one card for each, for each
 * front-end in a table.
 */
#include <errno.h>
#include <string.h>

#include "app/cmd.h"
#include "app/words.h"
#include "app/show.h"

/* The guest to be: its memory, and its cards, one per port. */
struct guest {
	struct cmd_call *call;
	const char *size;
	const struct spec *card[CMD_ARGS];
	unsigned n;
};

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

static int args_qemu(const struct guest *g)
{
	char path[2 * SPEC_PATH], mac[18], arg[2 * SPEC_PATH + 100];
	FILE *f = g->call->out;

	fprintf(f,
		"-m %s -object memory-backend-memfd,id=mem0,size=%s,share=on "
		"-machine q35,memory-backend=mem0",
		g->size, g->size);
	for (unsigned i = 0; i < g->n; i++) {
		const struct spec *s = g->card[i];

		path_qemu(path, s->path);
		snprintf(arg, sizeof(arg), "socket,id=chr-%s,path=%s,%s", s->name, path,
			s->server ? "reconnect=1" : "server=on");
		fputs(" -chardev ", f);
		put_quoted(f, arg);
		fprintf(f,
			" -netdev vhost-user,id=net-%s,chardev=chr-%s"
			" -device virtio-net-pci,netdev=net-%s,mac=%s",
			s->name, s->name, s->name, show_mac(s->mac, mac));
		if (args_mtu(s))
			fprintf(f, ",host_mtu=%u", s->mtu);
	}
	fputc('\n', f);
	err_set(&g->call->err, 0,
		"QEMU's warning about VHOST_USER_PROTOCOL_F_CONFIG is harmless; without KVM, QEMU "
		"7.2 needs vectors=0 in each -device");
	return CMD_DONE;
}

static int uml_check(struct cmd_call *call, const struct spec *s)
{
	if (!s->server)
		return err_set(&call->err, EINVAL,
			"args: User-Mode Linux only connects, it cannot listen; port '%s' has "
			"server=off",
			s->name);
	if (strchr(s->path, ':'))
		return err_set(&call->err, EINVAL,
			"args: User-Mode Linux takes no path with a colon: %.150s; give port '%s' "
			"another socket",
			s->path, s->name);
	return 0;
}

static int args_uml(const struct guest *g)
{
	char arg[SPEC_PATH + 40];

	for (unsigned i = 0; i < g->n; i++) {
		if (uml_check(g->call, g->card[i]))
			return CMD_MISTAKE;
	}
	fprintf(g->call->out, "mem=%s", g->size);
	for (unsigned i = 0; i < g->n; i++) {
		/* without a number of its own each device of a guest gets the next one */
		snprintf(arg, sizeof(arg), "virtio_uml.device=%s:1", g->card[i]->path);
		fputc(' ', g->call->out);
		put_quoted(g->call->out, arg);
	}
	fputc('\n', g->call->out);
	err_set(&g->call->err, 0,
		"its memory is a file in $TMPDIR or /dev/shm, whichever is on a tmpfs; "
		"one on a disk is refused");
	return CMD_DONE;
}

static int args_cloud_hypervisor(const struct guest *g)
{
	FILE *f = g->call->out;
	char mac[18], arg[SPEC_PATH + 100];

	fprintf(f, "--memory size=%s,shared=on --net", g->size);
	for (unsigned i = 0; i < g->n; i++) {
		const struct spec *s = g->card[i];

		snprintf(arg, sizeof(arg), "vhost_user=true,socket=%s,mac=%s%s", s->path,
			show_mac(s->mac, mac), s->server ? "" : ",vhost_mode=server");
		fputc(' ', f);
		put_quoted(f, arg);
	}
	fputc('\n', f);
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

static void put_interface(FILE *f, const struct spec *s)
{
	char mac[18];

	fprintf(f, "<interface type='vhostuser'>\n  <mac address='%s'/>\n", show_mac(s->mac, mac));
	fputs("  <source type='unix' path='", f);
	put_xml(f, s->path);
	fprintf(f, "' mode='%s'%s\n", s->server ? "client" : "server", s->server ? ">" : "/>");
	if (s->server)
		fputs("    <reconnect enabled='yes' timeout='1'/>\n  </source>\n", f);
	fputs("  <model type='virtio'/>\n", f);
	if (args_mtu(s))
		fprintf(f, "  <mtu size='%u'/>\n", s->mtu);
	fputs("</interface>\n", f);
}

/* How much memory there is, the domain says elsewhere. */
static int args_libvirt(const struct guest *g)
{
	fputs("<memoryBacking>\n"
	      "  <source type='memfd'/>\n"
	      "  <access mode='shared'/>\n"
	      "</memoryBacking>\n",
		g->call->out);
	for (unsigned i = 0; i < g->n; i++)
		put_interface(g->call->out, g->card[i]);
	return CMD_DONE;
}

static const struct front {
	const char *name;
	int (*print)(const struct guest *);
} fronts[] = {
	{"qemu", args_qemu},
	{"uml", args_uml},
	{"cloud-hypervisor", args_cloud_hypervisor},
	{"libvirt", args_libvirt},
};
#define N_FRONTS (sizeof(fronts) / sizeof(fronts[0]))

static const struct front *front_find(const char *name, struct err *err)
{
	const char *known[N_FRONTS];
	char hint[160];

	for (unsigned i = 0; i < N_FRONTS; i++) {
		known[i] = fronts[i].name;
		if (!strcmp(name, fronts[i].name))
			return &fronts[i];
	}
	err_set(err, EINVAL, "args: '%.60s' is not known%s", name,
		words_hint(hint, sizeof(hint), name, known, N_FRONTS));
	return NULL;
}

/* The ports that the words after the front-end's name, from `first` on, say. */
static int cards_find(struct guest *g, unsigned first)
{
	struct cmd_call *call = g->call;

	for (unsigned i = first; i < call->narg; i++) {
		const struct net_port *p = net_find(call->net, call->arg[i], &call->err);

		if (!p)
			return -ENOENT;
		if (p->kind != SPEC_VHOST_USER)
			return err_set(&call->err, EINVAL,
				"args: port '%s' is a %s: only a vhost-user port takes a guest by "
				"arguments",
				p->port->name, spec_kind_name(p->kind));
		for (unsigned k = 0; k < g->n; k++) {
			if (g->card[k] == &p->spec)
				return err_set(&call->err, EINVAL,
					"args: '%s' is given twice: a port takes one card",
					p->port->name);
		}
		g->card[g->n++] = &p->spec;
	}
	return 0;
}

/* "1G", "512M": as all front-ends read it. */
static int size_check(const char *size, struct err *err)
{
	size_t digits = strspn(size, "0123456789");

	if (digits && digits < 8 && *size != '0' && size[digits] && strchr("MG", size[digits]) &&
		!size[digits + 1])
		return 0;
	return err_set(err, EINVAL, "args: -m %.60s: must be a size such as 512M or 2G", size);
}

int word_args(struct cmd_call *call)
{
	struct guest g = {.call = call, .size = call->opt[0] ? call->opt[0] : "1G"};
	const struct front *front = front_find(call->arg[0], &call->err);

	if (!front || size_check(g.size, &call->err) || cards_find(&g, 1))
		return CMD_MISTAKE;
	return front->print(&g);
}
