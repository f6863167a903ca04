/* levels.h: what chart and table both ask of a model: the curves they show, their knees, and which
 * cache level a knee ends. */
#ifndef CB_REPORT_LEVELS_H
#define CB_REPORT_LEVELS_H

#include "model/model.h"
#include "stats/knees.h"

/* Index of the curve of reading with so many workers that queries answer by, of random loads on
 * the pages that they answer by or, base_pages, on smaller ones; -1: none. */
int cb__read_curve(const cb_model *model, int workers);
int cb__random_curve(const cb_model *model, bool base_pages);
/* Knees of one curve by size; returns how many. */
int cb__knees_of(const cb_model *model, int series, const cb__model_knee *knees[CB__KNEES_MAX]);
/* The knee that ends a level as cb_model_capacity answers it; NULL: not resolved. */
const cb__model_knee *cb__level_knee(const cb_model *model, int level, cb_pattern pattern,
                                     int workers);
/* "L1", "L2/L3" where one knee ends both, "" for a knee that ends no level. */
void cb__knee_name(const cb_model *model, const cb__model_knee *knee, char text[24]);
/* Three digits: "212", "21.4", "3.07"; "-": not a figure. */
void cb__figure_text(double value, char text[16]);

#endif
