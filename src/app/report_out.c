/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_out: one walk over UTF-8, three ways to write a character. The text is valid UTF-8: it comes
 * from jansson, which refuses any other, or from our own tables.
 */
#include "app/report_out.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ELLIPSIS    "\xe2\x80\xa6" /* U+2026 */
#define THIN_SPACE  "\xe2\x80\xaf" /* U+202F, does not break */

/* Bytes of the character that begins here; 1 for what is no UTF-8. */
static unsigned utf8_len(const char *s)
{
	uint8_t c = (uint8_t)*s;
	unsigned n = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4, i;

	for (i = 1; i < n && ((uint8_t)s[i] & 0xc0) == 0x80; i++)
		;
	return i;
}

/* Control characters, and what turns the writing direction: U+202A..E, U+2066..9, U+200E..F. */
static bool misleads(const char *s, unsigned len)
{
	uint8_t a = (uint8_t)s[0], b = len > 1 ? (uint8_t)s[1] : 0, c = len > 2 ? (uint8_t)s[2] : 0;

	if (len == 1)
		return a < 0x20 || a == 0x7f;
	if (len == 2)
		return a == 0xc2 && b < 0xa0;
	return len == 3 && a == 0xe2 &&
	       ((b == 0x80 && ((c >= 0xaa && c <= 0xae) || c == 0x8e || c == 0x8f)) ||
		       (b == 0x81 && c >= 0xa6 && c <= 0xa9));
}

static const char *html_char(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* What Markdown would take as its own, as a character reference. */
static const char *markdown_char(char c)
{
	switch (c) {
	case '|':
		return "&#124;";
	case '`':
		return "&#96;";
	case '*':
		return "&#42;";
	case '_':
		return "&#95;";
	case '[':
		return "&#91;";
	case ']':
		return "&#93;";
	case '\\':
		return "&#92;";
	case '!':
		return "&#33;";
	default:
		return html_char(c);
	}
}

static void put_text(FILE *f, const char *s, const char *(*escape)(char))
{
	unsigned len;

	for (; s && *s; s += len) {
		const char *other;

		len = utf8_len(s);
		other = len == 1 ? escape(*s) : NULL;
		if (misleads(s, len))
			other = REPLACEMENT;
		if (other)
			fputs(other, f);
		else
			fwrite(s, 1, len, f);
	}
}

/* Of the end of `s`, how many characters are of `set`. */
static size_t strspn_back(const char *s, const char *set)
{
	size_t len = strlen(s), n = 0;

	while (n < len && strchr(set, s[len - 1 - n]))
		n++;
	return n;
}

const char *report_number(double x, char text[REPORT_NUMBER])
{
	double a = fabs(x);
	char plain[REPORT_NUMBER];
	size_t len, n = 0;

	if (a >= 1e15 || (a < 1e-3 && a > 0)) {
		snprintf(text, REPORT_NUMBER, "%.3e", x);
		return text;
	}
	snprintf(plain, sizeof(plain), "%.*f",
		a >= 1000 || x == floor(x) ? 0
		: a >= 100                 ? 1
		: a >= 10                  ? 2
					   : 3,
		x);
	if (strchr(plain, '.')) /* 0.020 is 0.02 */
		plain[strlen(plain) - strspn_back(plain, "0")] = 0;
	if (strspn_back(plain, "."))
		plain[strlen(plain) - 1] = 0;
	len = strspn(plain, "-0123456789");
	for (size_t i = 0; plain[i]; i++) {
		size_t left = len - i;

		if (i < len && i && plain[i - 1] != '-' && left % 3 == 0 && a >= 10000) {
			memcpy(text + n, THIN_SPACE, 3);
			n += 3;
		}
		text[n++] = plain[i];
	}
	text[n] = 0;
	return text;
}

static void put_form(FILE *f, const char *form, va_list ap, const char *(*escape)(char))
{
	char number[REPORT_NUMBER];

	for (; *form; form++) {
		if (*form != '%') {
			fputc(*form, f);
			continue;
		}
		switch (*++form) {
		case 't':
			put_text(f, va_arg(ap, const char *), escape);
			break;
		case 'v':
			fputs(report_number(va_arg(ap, double), number), f);
			break;
		case 'r':
			fprintf(f, "%.2f", va_arg(ap, double));
			break;
		case 'd':
			fprintf(f, "%d", va_arg(ap, int));
			break;
		default:
			fputc(*form, f);
		}
	}
}

void html(FILE *f, const char *form, ...)
{
	va_list ap;

	va_start(ap, form);
	put_form(f, form, ap, html_char);
	va_end(ap);
}

void markdown(FILE *f, const char *form, ...)
{
	va_list ap;

	va_start(ap, form);
	put_form(f, form, ap, markdown_char);
	va_end(ap);
}

static unsigned utf8_count(const char *s)
{
	unsigned n = 0;

	for (; *s; s += utf8_len(s))
		n++;
	return n;
}

void plot_text(FILE *f, const char *s, unsigned max)
{
	bool cut = utf8_count(s) > max;
	unsigned len;

	if (cut)
		max--;
	fputc('\'', f);
	for (; *s && max; s += len, max--) {
		len = utf8_len(s);
		if (misleads(s, len))
			fputs(REPLACEMENT, f);
		else if (strchr("'`\"\\", *s))
			fputs("\xe2\x80\x99", f); /* U+2019, a quote that quotes nothing */
		else if (*s == '%')
			fputs("\xef\xbc\x85", f); /* U+FF05: tic labels are formats */
		else
			fwrite(s, 1, len, f);
	}
	fprintf(f, "%s'", cut ? ELLIPSIS : "");
}
