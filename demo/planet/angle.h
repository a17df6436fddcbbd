// SPDX-License-Identifier: MIT
#pragma once

// Sine and cosine of doubles, by + - * / and the square root alone: the same bits with every compiler and CPU, for what
// is simulated. Right to some millionths, and the squares of both add up to 1.

#include <math.h>
#include <stdint.h>

// Of a quarter turn's share, 0 to 1: the first terms of the series.
static inline double angle_quarter_sine(double r) {
    double q = r * r;
    return r * (1.5707963267948966 -
                q * (0.6459640975062463 -
                     q * (0.07969262624616704 - q * (0.004681754135318687 - q * 0.00016044118478735982))));
}

// 1 is a full turn; within 2^50 of them.
static inline void angle_of(double turns, double *sine, double *cosine) {
    double whole = (double)(int64_t)turns, t = turns - whole;
    if (t < 0) t += 1;
    int quarter = t < 0.25 ? 0 : t < 0.5 ? 1 : t < 0.75 ? 2 : 3;
    double r = t * 4 - quarter, s = angle_quarter_sine(r), c = angle_quarter_sine(1 - r);
    double scale = 1 / sqrt(s * s + c * c);
    s *= scale, c *= scale;
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}
