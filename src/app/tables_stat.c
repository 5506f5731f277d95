/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_stat: medians, intervals, verdicts.
 *
 * The interval is of the median of the paired ratios, from their order alone: nothing is supposed of
 * how they are spread. Between the k-th least and the k-th most of n the median lies with probability
 * 1 - 2 * sum(i < k) C(n, i) / 2^n; k is the largest for which that is 0.93 or more.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/tables.h"

#define SURE      0.93
#define NULL_BAND 0.05 /* a control within it is quiet enough, whatever its interval says */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double middle(const double *sorted, unsigned n)
{
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double tables_median(const double *x, unsigned n)
{
	double sorted[TABLES_PAIRS];

	if (!n)
		return NAN;
	memcpy(sorted, x, n * sizeof(*x));
	qsort(sorted, n, sizeof(*sorted), by_size);
	return middle(sorted, n);
}

static unsigned rank(unsigned n)
{
	double term = pow(0.5, n), tail = term;
	unsigned k = 0;

	while (k + 1 <= n / 2 && 1 - 2 * tail >= SURE) {
		k++;
		term *= (double)(n - k + 1) / k;
		tail += term;
	}
	return k ? k - 1 : 0;
}

struct tables_ratio tables_ratio(const double *arm, const double *base, unsigned n)
{
	struct tables_ratio r;
	double x[TABLES_PAIRS];
	const unsigned k = rank(n);

	for (unsigned i = 0; i < n; i++)
		x[i] = arm[i] / base[i];
	qsort(x, n, sizeof(*x), by_size);
	r.median = middle(x, n);
	r.low = x[k];
	r.high = x[n - 1 - k];
	return r;
}

static const char *judge_null(const struct tables_ratio *r, char *why, size_t size)
{
	const bool quiet = fabs(r->median - 1) <= NULL_BAND;

	if (r->low <= 1 && r->high >= 1)
		return "null control holds";
	snprintf(why, size, "%.1f %% off 1, %s", fabs(r->median - 1) * 100,
		quiet ? "which is within the 5 % that count as noise"
		      : "outside of its interval and of 5 %: other changes of this size prove "
			"nothing");
	return quiet ? "null control holds" : "null control fails";
}

static const char *judge(
	const struct tables_row *row, const struct tables_ratio *r, char *why, size_t size)
{
	const double said = log(row->published), seen = log(r->median);
	const bool up = row->published > 1;
	const double near = up ? r->low : r->high; /* the end of the interval nearer to 1 */

	if (said * seen <= 0 || (up ? near <= 1 : near >= 1)) {
		snprintf(why, size,
			said * seen <= 0 ? "it goes the other way" : "the interval reaches over 1");
		return "not reproduced";
	}
	if (r->low <= row->published && r->high >= row->published)
		return "reproduced";
	if (seen / said >= 0.5 && seen / said <= 2)
		return "reproduced";
	snprintf(why, size, "the effect is %.1f times the published one", seen / said);
	return "direction only";
}

const char *tables_verdict(const struct tables_row *row, const struct tables_ratio *r, bool counted,
	bool held, bool quick, char *why, size_t size)
{
	*why = 0;
	if (counted && !held)
		return "counters miss";
	if (quick)
		return counted ? "counters hold" : "not judged";
	if (row->null)
		return judge_null(r, why, size);
	if (row->faster) {
		if (r->low > 1)
			return "reproduced";
		snprintf(why, size,
			r->median > 1 ? "the interval reaches over 1" : "it goes the other way");
		return "not reproduced";
	}
	if (row->published == 0)
		return counted ? "counters hold" : "not judged";
	if (row->published != 1)
		return judge(row, r, why, size);
	return !strcmp(judge_null(r, why, size), "null control holds") ? "reproduced"
								       : "not reproduced";
}
