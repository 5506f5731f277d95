/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impair_fate: what becomes of a frame. For each frame the same number of random numbers is drawn,
 * so that one rule's chances do not move when another rule is set. Fates that are not "nothing" are
 * remembered and written out at the end.
 */
#include "port/impair_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MILLION 1000000u

void fates_init(struct fates *f, const struct impair_rules *rules, uint64_t seed)
{
	memset(f, 0, sizeof(*f));
	f->rules = rules;
	rand_init(&f->rand, seed);
}

static struct fate *fates_map(void)
{
	void *m = mmap(NULL, FATES_MAX * sizeof(struct fate), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

void fates_fini(struct fates *f)
{
	if (f->log)
		munmap(f->log, FATES_MAX * sizeof(struct fate));
	if (f->replay)
		munmap(f->replay, FATES_MAX * sizeof(struct fate));
	f->log = f->replay = NULL;
}

static bool is_lost(struct fates *f, uint32_t by_chance, uint32_t spell)
{
	const struct impair_rules *r = f->rules;
	bool lost = by_chance < r->loss;

	if (r->burst_enter) {
		f->bad_spell = f->bad_spell ? spell >= r->burst_leave : spell < r->burst_enter;
		lost |= f->bad_spell;
	}
	if (r->loss_every && f->ordinal % r->loss_every == 0)
		lost = true;
	for (uint32_t i = 0; i < r->n_at; i++)
		lost |= r->loss_at[i] == f->ordinal;
	return lost;
}

static struct fate by_chance(struct fates *f)
{
	const struct impair_rules *r = f->rules;
	struct fate x = {.ordinal = f->ordinal};
	uint32_t loss = rand_below(&f->rand, MILLION), spell = rand_below(&f->rand, MILLION);
	uint32_t dup = rand_below(&f->rand, MILLION), held = rand_below(&f->rand, MILLION);
	uint32_t corrupt = rand_below(&f->rand, MILLION);
	uint64_t where = rand_u64(&f->rand);

	x.where = (uint32_t)where;
	if (r->jitter)
		x.jitter = (nsec_t)((where >> 1) % (uint64_t)(2 * r->jitter + 1)) - r->jitter;
	x.what |= is_lost(f, loss, spell) ? FATE_LOST : 0;
	x.what |= dup < r->dup ? FATE_DUP : 0;
	x.what |= held < r->reorder ? FATE_HELD : 0;
	x.what |= corrupt < r->corrupt ? FATE_CORRUPT : 0;
	return x;
}

static struct fate replayed(struct fates *f)
{
	while (f->next < f->n_replay && f->replay[f->next].ordinal < f->ordinal)
		f->next++;
	if (f->next < f->n_replay && f->replay[f->next].ordinal == f->ordinal)
		return f->replay[f->next++];
	return (struct fate){.ordinal = f->ordinal};
}

struct fate fate_next(struct fates *f)
{
	struct fate x;

	f->ordinal++;
	x = f->replay ? replayed(f) : by_chance(f);
	if (!f->log || !(x.what || x.jitter))
		return x;
	if (f->n_log < FATES_MAX)
		f->log[f->n_log++] = x;
	else
		f->unlogged++;
	return x;
}

/* the file */

int fates_want_log(struct fates *in, struct fates *out, const char *path, struct err *err)
{
	FILE *file = fopen(path, "w"); /* now, so that a wrong name is told now */

	if (!file)
		return err_set(
			err, errno, "impair: cannot write log=%s: %s", path, strerror(errno));
	fclose(file);
	in->log = fates_map();
	out->log = fates_map();
	return in->log && out->log ? 0 : err_set(err, ENOMEM, "impair: no memory for log=%s", path);
}

static void fates_write(FILE *file, const char *way, const struct fates *f)
{
	for (uint32_t i = 0; i < f->n_log; i++) {
		const struct fate *x = &f->log[i];

		fprintf(file, "%s %" PRIu64, way, x->ordinal);
		if (x->what & FATE_LOST)
			fputs(" lost", file);
		if (x->what & FATE_DUP)
			fputs(" dup", file);
		if (x->what & FATE_HELD)
			fputs(" held", file);
		if (x->what & FATE_CORRUPT)
			fprintf(file, " corrupt=%" PRIu32, x->where);
		if (x->jitter)
			fprintf(file, " jitter=%" PRId64, x->jitter);
		fputc('\n', file);
	}
	if (f->unlogged)
		fprintf(file, "# %s: %" PRIu64 " more were not kept\n", way, f->unlogged);
}

void fates_save(const struct fates *in, const struct fates *out, const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return; /* it could be written when we began; nobody is left to be told */
	fates_write(file, "in", in);
	fates_write(file, "out", out);
	fclose(file);
}

static bool fate_parse(char *line, struct fate *x, bool *out)
{
	char *save = NULL, *word = strtok_r(line, " \n", &save);

	*x = (struct fate){0};
	*out = word && !strcmp(word, "out");
	if (!word || (!*out && strcmp(word, "in") != 0))
		return false;
	word = strtok_r(NULL, " \n", &save);
	x->ordinal = word ? strtoull(word, NULL, 10) : 0;
	while ((word = strtok_r(NULL, " \n", &save))) {
		if (!strcmp(word, "lost"))
			x->what |= FATE_LOST;
		else if (!strcmp(word, "dup"))
			x->what |= FATE_DUP;
		else if (!strcmp(word, "held"))
			x->what |= FATE_HELD;
		else if (sscanf(word, "corrupt=%" SCNu32, &x->where) == 1)
			x->what |= FATE_CORRUPT;
		else if (sscanf(word, "jitter=%" SCNd64, &x->jitter) != 1)
			return false;
	}
	return x->ordinal > 0;
}

int fates_load(struct fates *in, struct fates *out, const char *path, struct err *err)
{
	FILE *file = fopen(path, "r");
	unsigned number = 0;
	char line[200];
	int r = 0;

	if (!file)
		return err_set(
			err, errno, "impair: cannot read replay=%s: %s", path, strerror(errno));
	in->replay = fates_map();
	out->replay = fates_map();
	if (!in->replay || !out->replay)
		r = err_set(err, ENOMEM, "impair: no memory for replay=%s", path);
	while (!r && fgets(line, sizeof(line), file)) {
		struct fates *f;
		struct fate x;
		bool is_out;

		number++;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!fate_parse(line, &x, &is_out)) {
			r = err_set(err, EINVAL,
				"impair: %s:%u is not like \"in 17 lost\" or \"out 4 dup "
				"jitter=-120\"",
				path, number);
			break;
		}
		f = is_out ? out : in;
		if (f->n_replay < FATES_MAX)
			f->replay[f->n_replay++] = x;
	}
	fclose(file);
	return r;
}
