/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qcu-smi: what of its command line the pages need, and the fields that they show. It asks NVML and
 * nothing else, as anybody's tool does.
 */
#ifndef QCUL_NVML_SMI_H
#define QCUL_NVML_SMI_H

#include <stdbool.h>
#include <stddef.h>

#include "qcu-library/nvml/api.h"

#define SMI_TEXT      128
#define SMI_DEVICES   64u
#define SMI_PROCESSES 64u
#define SMI_FIELDS    256u

/* What a field is asked of: a device, and for fields of programs one of them. */
struct smi_subject {
	nv_device_t device;
	const nv_process *process;
};

/* Writes a field's text, without its unit. NV_NOT_SUPPORTED: not known. */
typedef nv_return smi_read_fn(const struct smi_subject *of, char text[SMI_TEXT]);

struct smi_field {
	const char *name; /* as headers have it */
	const char
		*also; /* other names that it may be asked by, with spaces between them; or NULL */
	const char *unit;
	bool number;
	smi_read_fn *read; /* NULL: a guest cannot know it */
};

/* The fields of a GPU, and those of a program. Both end with a field without a name. */
extern const struct smi_field smi_gpu_fields[], smi_app_fields[];

/* NULL: there is none. */
const struct smi_field *smi_field_of(const struct smi_field *fields, const char *name, size_t len);
/* Writes "N/A" and returns NV_SUCCESS for what is not known; "" with any other error. */
nv_return smi_read(const struct smi_field *field, const struct smi_subject *of,
		   char text[SMI_TEXT]);

struct smi_options {
	nv_device_t device[SMI_DEVICES];
	unsigned int devices;
	const struct smi_field *field[SMI_FIELDS];
	unsigned int fields;
	bool header, units;
	const char *display; /* of -q: the sections, with commas between them; NULL: all */
	const char *groups;  /* of dmon */
	bool again;	     /* the second time, and later */
};

/* Pages. Each prints what it says of all devices, and returns NVML's error. */
typedef nv_return smi_page_fn(const struct smi_options *options);
smi_page_fn smi_show_table, smi_show_list, smi_show_query, smi_show_gpus, smi_show_apps,
	smi_show_json, smi_show_dmon;
/* Is there a section of -q with this name? */
bool smi_is_display(const char *name, size_t len);

#endif
