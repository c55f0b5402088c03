/* SPDX-License-Identifier: Apache-2.0 */
#include "mnist/mistakes.h"

#include <string.h>

/* A cell of the picture has a digit, twice as large, and a line of text. */
enum {
    COLUMNS = 5,
    ROWS = MISTAKES_MOST / COLUMNS,
    SCALE = 2,
    GAP = 4,
    TEXT_HEIGHT = 10,
    CELL_WIDTH = SCALE * IMAGE_SIDE + GAP,
    CELL_HEIGHT = SCALE * IMAGE_SIDE + TEXT_HEIGHT + 2 * GAP,
    WIDTH = COLUMNS * CELL_WIDTH + GAP,
    PAPER = 40 /* grey between the digits, which are white on black */
};

/* Letters of 3 x 5 pixels, row by row from the top, the left one highest. */
enum { LETTER_WIDTH = 3, LETTER_HEIGHT = 5, GREATER = 10 };
static const uint16_t letters[] = {075557, 026227, 071747, 071717,
                                   055711, 074717, 074757, 071244,
                                   075757, 075717, 042124};

struct picture {
    uint8_t pixels[ROWS * CELL_HEIGHT + GAP][WIDTH];
};

static void draw_square(struct picture *p, int x, int y, uint8_t value)
{
    for (int i = 0; i < SCALE * SCALE; i++)
        p->pixels[y + i / SCALE][x + i % SCALE] = value;
}

static void draw_letter(struct picture *p, int x, int y, int letter)
{
    for (int i = 0; i < LETTER_WIDTH * LETTER_HEIGHT; i++)
        if (letters[letter] >> (LETTER_WIDTH * LETTER_HEIGHT - 1 - i) & 1)
            draw_square(p, x + i % LETTER_WIDTH * SCALE,
                        y + i / LETTER_WIDTH * SCALE, 255);
}

static void draw_mistake(struct picture *p, const struct mistakes *m, int i)
{
    const int text[] = {m->digits[i].label, GREATER, m->digits[i].taken_for};
    int x = GAP + i % COLUMNS * CELL_WIDTH, y = GAP + i / COLUMNS * CELL_HEIGHT;
    int middle = (SCALE * IMAGE_SIDE - 3 * (LETTER_WIDTH + 1) * SCALE) / 2;

    for (int k = 0; k < IMAGE_PIXELS; k++)
        draw_square(p, x + k % IMAGE_SIDE * SCALE, y + k / IMAGE_SIDE * SCALE,
                    m->digits[i].pixels[k]);
    for (int k = 0; k < 3; k++)
        draw_letter(p, x + middle + k * (LETTER_WIDTH + 1) * SCALE,
                    y + SCALE * IMAGE_SIDE + GAP, text[k]);
}

int mistakes_visit(void *context, const struct trainer_results *r)
{
    struct mistakes *m = context;
    const float *pixels = r->inputs[0], *logits = r->outputs[0];
    const int32_t *labels = r->inputs[1];

    for (int64_t i = 0; i < r->rows && m->count < MISTAKES_MOST; i++) {
        const float *of = logits + i * CLASSES;
        int best = 0;

        for (int k = 1; k < CLASSES; k++)
            best = of[k] > of[best] ? k : best;
        if (best == labels[i])
            continue;
        for (int k = 0; k < IMAGE_PIXELS; k++)
            m->digits[m->count].pixels[k] =
                (uint8_t)(pixels[i * IMAGE_PIXELS + k] * 255 + 0.5F);
        m->digits[m->count].label = labels[i];
        m->digits[m->count++].taken_for = best;
    }
    return 0;
}

int mistakes_log(struct mistakes *m, hvd_log *log, const char *tag,
                 int64_t step)
{
    static struct picture picture; /* one thread logs */
    int rows = (m->count + COLUMNS - 1) / COLUMNS, status;

    if (m->count == 0)
        return 0;
    memset(&picture, PAPER, sizeof picture);
    for (int i = 0; i < m->count; i++)
        draw_mistake(&picture, m, i);
    m->count = 0;
    status = hvd_log_image(log, tag, step, &picture.pixels[0][0],
                           rows * CELL_HEIGHT + GAP, WIDTH, 1);
    return status;
}
