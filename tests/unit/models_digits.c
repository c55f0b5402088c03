/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the drawn digits: they are the same on every machine, differ between
 * seeds, and can be learnt.
 */
#include "mnist/dataset.h"

#include "suite.h"

#include <string.h>

static struct images draw(uint64_t seed, int set, int64_t count)
{
    struct images images = {0};

    ck_assert_int_eq(digits_draw(seed, set, count, NULL, &images), 0);
    ck_assert_int_eq(images.count, count);
    return images;
}

static int same_image(const struct images *a, int64_t i, const struct images *b,
                      int64_t k)
{
    return memcmp(a->pixels + i * IMAGE_PIXELS, b->pixels + k * IMAGE_PIXELS,
                  IMAGE_PIXELS) == 0;
}

TEST(one_seed_draws_one_set)
{
    struct images a = draw(7, DIGITS_TRAIN, 50);
    struct images b = draw(7, DIGITS_TRAIN, 50);

    ck_assert_mem_eq(a.pixels, b.pixels, 50 * IMAGE_PIXELS);
    ck_assert_mem_eq(a.labels, b.labels, 50);
    images_fini(&a);
    images_fini(&b);
}

TEST(more_images_begin_with_the_same)
{
    struct images few = draw(7, DIGITS_TEST, 10);
    struct images many = draw(7, DIGITS_TEST, 100);

    ck_assert_mem_eq(few.pixels, many.pixels, 10 * IMAGE_PIXELS);
    ck_assert_mem_eq(few.labels, many.labels, 10);
    images_fini(&few);
    images_fini(&many);
}

/* The bits must not depend on machine, compiler or flags: ranks draw them
 * each for itself. FNV-1a of pixels and labels. */
TEST(bits_are_pinned)
{
    struct images images = draw(1, DIGITS_TRAIN, 200);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (int i = 0; i < 200 * IMAGE_PIXELS; i++)
        hash = (hash ^ images.pixels[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < 200; i++)
        hash = (hash ^ images.labels[i]) * UINT64_C(0x100000001b3);
    images_fini(&images);
    ck_assert_uint_eq(hash, UINT64_C(17568643418403281027));
}

/* The training set shares no image with the test set, nor with the set of a
 * neighbouring seed. */
TEST(sets_do_not_overlap)
{
    enum { N = 300 };
    struct images train = draw(3, DIGITS_TRAIN, N);
    struct images others[] = {draw(3, DIGITS_TEST, N), draw(4, DIGITS_TRAIN, N),
                              draw(4, DIGITS_TEST, N)};

    for (int set = 0; set < 3; set++) {
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                ck_assert(!same_image(&train, i, &others[set], k));
        images_fini(&others[set]);
    }
    images_fini(&train);
}

TEST(all_classes_in_fair_number)
{
    enum { N = 5000 };
    struct images images = draw(1, DIGITS_TRAIN, N);
    int counts[CLASSES] = {0};

    for (int i = 0; i < N; i++) {
        ck_assert_int_lt(images.labels[i], CLASSES);
        counts[images.labels[i]]++;
    }
    for (int i = 0; i < CLASSES; i++)
        ck_assert_int_ge(counts[i], N / CLASSES * 8 / 10);
    images_fini(&images);
}

/* Every image has ink, mostly paper, and its ink near the middle. */
TEST(images_are_written_in_the_middle)
{
    enum { N = 1000, MARGIN = 3 };
    struct images images = draw(2, DIGITS_TEST, N);

    for (int i = 0; i < N; i++) {
        int ink = 0, outside = 0;
        for (int k = 0; k < IMAGE_PIXELS; k++) {
            int x = k % IMAGE_SIDE, y = k / IMAGE_SIDE;
            int dark = images.pixels[i * IMAGE_PIXELS + k] > 128;
            ink += dark;
            outside += dark && (x < MARGIN || x >= IMAGE_SIDE - MARGIN ||
                                y < MARGIN || y >= IMAGE_SIDE - MARGIN);
        }
        ck_assert_msg(ink >= 12 && ink < IMAGE_PIXELS / 2, "image %d: %d", i,
                      ink);
        ck_assert_msg(outside * 2 <= ink, "image %d: %d of %d", i, outside,
                      ink);
    }
    images_fini(&images);
}

/* The test gives each test image the label of its nearest training image. The
 * result is much better than chance, as classes mean something, and not
 * perfect, as digits take learning. */
TEST(classes_can_be_told_apart)
{
    enum { TRAIN = 1000, TEST = 200 };
    struct images train = draw(5, DIGITS_TRAIN, TRAIN);
    struct images test = draw(5, DIGITS_TEST, TEST);
    int right = 0;

    for (int i = 0; i < TEST; i++) {
        long best = -1;
        int label = -1;
        for (int k = 0; k < TRAIN; k++) {
            long distance = 0;
            for (int p = 0; p < IMAGE_PIXELS; p++) {
                long d = test.pixels[i * IMAGE_PIXELS + p] -
                         train.pixels[k * IMAGE_PIXELS + p];
                distance += d * d;
            }
            if (best < 0 || distance < best) {
                best = distance;
                label = train.labels[k];
            }
        }
        right += label == test.labels[i];
    }
    images_fini(&train);
    images_fini(&test);
    ck_assert_int_ge(right, TEST * 6 / 10);
    ck_assert_int_lt(right, TEST);
}

/* Elements are the digits in their order, as numbers from 0 to 1. */
TEST(digits_are_a_data_set)
{
    enum { COUNT = 20 };
    const struct digits_source source = {.seed = 5, .count = COUNT};
    struct images drawn = draw(5, DIGITS_TEST, COUNT);
    hvd_dataset *set = digits_dataset(&source, DIGITS_TEST, NULL);
    hvd_iterator *it = NULL;
    hvd_batch batch;

    ck_assert_int_eq(hvd_dataset_count(set), COUNT);
    ck_assert_int_eq(hvd_iterator_new(set, NULL, &it), 0);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
        ck_assert_str_eq(batch.components[0].name, "images");
        ck_assert_str_eq(batch.components[1].name, "labels");
        ck_assert_int_eq(*(const int32_t *)batch.data[1], drawn.labels[i]);
        for (int p = 0; p < IMAGE_PIXELS; p++)
            ck_assert_float_eq(((const float *)batch.data[0])[p],
                               (float)drawn.pixels[i * IMAGE_PIXELS + p] / 255);
    }
    ck_assert_int_eq(hvd_iterator_next(it, &batch), HVD_END_OF_DATA);
    hvd_iterator_free(it);
    hvd_dataset_free(set);
    images_fini(&drawn);
}

TEST_MAIN("models_digits", .seconds = 60)
