// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texture and surface objects of the software GPU: descriptions of how the PTX machine reads an
 * image. Also tensor maps, which no kernel here can use, but which a program may make. The number
 * of an object has the slot in its low 16 bits. A counter above them makes the number of each new
 * object different, so that a kernel with an old number finds nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_image.h"
#include "qcu-device/soft/gpu/soft.h"

#define SLOTS	     65536u /* slot 0 is not used: 0 means no object */
#define LINEAR_ALIGN 512u   /* the alignments and the limit are announced by props.c */
#define PITCH_ALIGN  32u
/* As on NVIDIA's GPUs. */
#define LINEAR_MAX   (UINT64_C(1) << 30) /* elements */
#define LINEAR_BYTES (UINT64_C(1) << 32)

struct soft_image {
	struct ptx_image img;
	uint64_t number;
	unsigned int dev;
};

bool soft_images_init(struct soft_images *t)
{
	t->slots = calloc(SLOTS, sizeof(*t->slots));
	t->next = 1;
	pthread_mutex_init(&t->lock, NULL);
	return t->slots;
}

void soft_images_fini(struct soft_images *t)
{
	uint32_t i;

	if (!t->slots)
		return;
	/* To look at a slot that was never used makes the kernel give it a page. */
	for (i = 1; t->count && i < SLOTS; i++) {
		if (!atomic_load(&t->slots[i]))
			continue;
		free(atomic_load(&t->slots[i]));
		t->count--;
	}
	free(t->slots);
	pthread_mutex_destroy(&t->lock);
}

static struct soft_image *find_image_object(struct soft_images *t, uint64_t number)
{
	struct soft_image *i = atomic_load(&t->slots[number % SLOTS]);

	return i && i->number == number ? i : NULL;
}

/* An object that a launch has found exists until the launch has ended: see destroy_image_object().
 */
const struct ptx_image *soft_env_image(void *ctx, uint64_t number)
{
	struct soft_device *d = ctx;
	struct soft_image *i = find_image_object(&d->be->images, number);

	return i && i->dev == d->index ? &i->img : NULL;
}

/* Gives the object the number that is wanted, if it is free. The lock is held. */
static int add_wanted(struct soft_images *t, struct soft_image *image, uint64_t *number)
{
	uint64_t wanted = t->wanted_count ? t->wanted->addr : 0;

	if (!(wanted % SLOTS) || wanted / SLOTS > UINT32_MAX || !(wanted / SLOTS) ||
	    atomic_load(&t->slots[wanted % SLOTS]))
		return QCU_ERR_MemoryAllocation;
	if (t->made < wanted / SLOTS)
		t->made = (uint32_t)(wanted / SLOTS);
	image->number = *number = wanted;
	atomic_store(&t->slots[wanted % SLOTS], image);
	t->count++;
	return QCU_ERR_Success;
}

static int add_image_object(struct soft_images *t, struct soft_image *image, uint64_t *number)
{
	uint32_t tries;
	int rc;

	pthread_mutex_lock(&t->lock);
	if (t->wanted) {
		rc = add_wanted(t, image, number);
		pthread_mutex_unlock(&t->lock);
		if (rc)
			free(image);
		return rc;
	}
	for (tries = 1; tries < SLOTS; tries++) {
		uint32_t slot = t->next;

		t->next = t->next + 1 < SLOTS ? t->next + 1 : 1;
		if (atomic_load(&t->slots[slot]))
			continue;
		image->number = (uint64_t)++t->made * SLOTS + slot;
		atomic_store(&t->slots[slot], image);
		t->count++;
		*number = image->number;
		break;
	}
	pthread_mutex_unlock(&t->lock);
	if (tries < SLOTS)
		return QCU_ERR_Success;
	free(image);
	return QCU_ERR_MemoryAllocation;
}

/*
 * The first wait is for work that is queued now: it must still find the object. The second wait is
 * for work that another thread queued during the first one: it may have found the object, too.
 */
static int destroy_image_object(struct be *be, uint64_t number, bool surface)
{
	struct soft_images *t = &be->images;
	struct soft_image *i;

	soft_wait(be, NULL);
	pthread_mutex_lock(&t->lock);
	i = find_image_object(t, number);
	if (i && i->img.surface == surface) {
		atomic_store(&t->slots[number % SLOTS], NULL);
		t->count--;
	} else {
		i = NULL;
	}
	pthread_mutex_unlock(&t->lock);
	if (!i)
		return QCU_ERR_InvalidValue;
	soft_wait(be, NULL);
	free(i);
	return atomic_load(&be->sticky);
}

static float float_from_field(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static void set_format(struct ptx_image *img, const uint8_t bits[4], uint32_t kind)
{
	img->bits = bits[0];
	img->texel = (enum ptx_texel)kind;
	for (img->channels = 1; img->channels < 4 && bits[img->channels];)
		img->channels++;
	img->elem = (uint8_t)(img->bits / 8 * img->channels);
}

static void set_array(struct ptx_image *img, const struct be_array *a, uint32_t first,
		      uint32_t last)
{
	const struct be_array_desc *d = &a->desc;
	uint32_t i;

	img->layered = d->flags & BE_ARRAY_LAYERED;
	img->cube = d->flags & BE_ARRAY_CUBEMAP;
	img->dims = d->height ? 2 : 1;
	if (d->depth && !img->layered && !img->cube)
		img->dims = 3;
	img->levels = last - first + 1;
	for (i = 0; i < img->levels; i++) {
		const struct soft_level *l = &a->level[first + i];

		img->level[i] = (struct ptx_image_level){
			.addr = l->addr,
			.size = {l->size[0], l->size[1], l->size[2]},
			.pitch = l->pitch,
			.slice = l->slice,
		};
	}
}

static int set_memory(struct be *be, struct ptx_image *img, const struct qcu_texture_msg *t)
{
	uint32_t elem = img->elem;
	uint64_t count = t->bytes / elem, len = elem;

	img->memory = true;
	img->levels = 1;
	img->dims = 1;
	img->fetch = t->kind == QCU_TEXTURE_LINEAR;
	if (t->addr % LINEAR_ALIGN)
		return QCU_ERR_InvalidValue;
	if (img->fetch) {
		if (!count || count > LINEAR_MAX || t->bytes > LINEAR_BYTES)
			return QCU_ERR_InvalidValue;
		img->level[0] = (struct ptx_image_level){.size = {(uint32_t)count, 1, 1}};
	} else {
		if (t->pitch % PITCH_ALIGN || t->width > 131072 || t->height > 65000)
			return QCU_ERR_InvalidValue;
		img->dims = 2;
		img->level[0] = (struct ptx_image_level){.size = {t->width, t->height, 1}};
		len = (uint64_t)t->pitch * (t->height - 1) + (uint64_t)t->width * elem;
	}
	img->level[0].addr = t->addr;
	img->level[0].pitch = t->pitch;
	return soft_mem_usable(be, t->addr, len) ? QCU_ERR_Success : QCU_ERR_InvalidValue;
}

/* A view may select levels and layers. It may not change the format or the size. */
static int set_view(struct ptx_image *img, const struct qcu_texture_msg *t,
		    const struct be_array *a)
{
	struct ptx_image_level *l = &img->level[0];
	uint32_t layers = img->layered || img->cube ? l->size[2] : 0, i;

	if (t->first_level > t->last_level || t->last_level >= a->levels ||
	    t->first_layer > t->last_layer || (layers && t->last_layer >= layers))
		return QCU_ERR_InvalidValue;
	if (t->view_format) {
		soft_say("texture views that change the format are not supported");
		return QCU_ERR_NotSupported;
	}
	set_array(img, a, t->first_level, t->last_level);
	if (t->view_width != l->size[0] || (t->view_height && t->view_height != l->size[1]))
		return QCU_ERR_InvalidValue;
	if (!layers)
		return QCU_ERR_Success;
	for (i = 0; i < img->levels; i++) {
		img->level[i].addr += t->first_layer * img->level[i].slice;
		img->level[i].size[2] = t->last_layer - t->first_layer + 1;
	}
	return img->cube && l->size[2] % 6 ? (int)QCU_ERR_InvalidValue : (int)QCU_ERR_Success;
}

static int set_sampler(struct ptx_image *img, const struct qcu_texture_msg *t)
{
	unsigned int i;

	img->normalized = t->normalized || img->cube;
	img->linear = t->filter;
	img->mip_linear = t->mip_filter;
	img->unit = t->read && img->texel != TEXEL_FLOAT;
	img->srgb = t->srgb && img->unit && img->bits == 8 && img->texel == TEXEL_UNSIGNED;
	for (i = 0; i < 3; i++)
		img->address[i] = (enum ptx_address)t->address[i];
	for (i = 0; i < 4; i++)
		img->border[i] = float_from_field(t->border[i]);
	img->bias = float_from_field(t->mip_bias);
	img->min_level = float_from_field(t->mip_min);
	img->max_level = float_from_field(t->mip_max);
	if (img->unit && img->bits == 32)
		return QCU_ERR_InvalidNormSetting;
	if (img->linear && img->texel != TEXEL_FLOAT && !img->unit && !img->fetch)
		return QCU_ERR_InvalidFilterSetting;
	if (t->kind == QCU_TEXTURE_MIPMAP && !img->normalized)
		return QCU_ERR_InvalidValue;
	if (t->seamless && img->cube && img->linear) {
		soft_say("linear filtering across the edges of a cube is not supported");
		return QCU_ERR_NotSupported;
	}
	return QCU_ERR_Success;
}

int soft_texture_create(struct be *be, unsigned int dev, const struct qcu_texture_msg *t,
			struct be_array *a, uint64_t *object)
{
	struct soft_image *i = calloc(1, sizeof(*i));
	int rc = atomic_load(&be->sticky);

	if (!i)
		return QCU_ERR_MemoryAllocation;
	i->dev = dev;
	if (a) {
		set_format(&i->img, a->desc.bits, a->desc.kind);
		if (t->kind == QCU_TEXTURE_MIPMAP)
			set_array(&i->img, a, 0, a->levels - 1);
		else
			set_array(&i->img, a, t->level, t->level);
		if (!rc && t->view)
			rc = set_view(&i->img, t, a);
	} else {
		set_format(&i->img, t->bits, t->format);
		if (t->format > 2 || (t->format == 2 && t->bits[0] == 8))
			rc = rc ? rc : (int)QCU_ERR_InvalidChannelDescriptor;
		rc = rc ? rc : set_memory(be, &i->img, t);
	}
	if (!rc)
		rc = set_sampler(&i->img, t);
	if (!rc)
		return add_image_object(&be->images, i, object);
	free(i);
	return rc;
}

int soft_texture_destroy(struct be *be, unsigned int dev, uint64_t object)
{
	(void)dev;
	return destroy_image_object(be, object, false);
}

int soft_surface_create(struct be *be, unsigned int dev, struct be_array *a, uint32_t level,
			uint64_t *object)
{
	struct soft_image *i;
	int rc = atomic_load(&be->sticky);

	if (rc)
		return rc;
	i = calloc(1, sizeof(*i));
	if (!i)
		return QCU_ERR_MemoryAllocation;
	i->dev = dev;
	i->img.surface = true;
	set_format(&i->img, a->desc.bits, a->desc.kind);
	set_array(&i->img, a, level, level);
	return add_image_object(&be->images, i, object);
}

int soft_surface_destroy(struct be *be, unsigned int dev, uint64_t object)
{
	(void)dev;
	return destroy_image_object(be, object, true);
}

/* ---- tensor maps ---- */

#define TENSOR_MAGIC 0x70616d726f736e74ull
#define ROW_ALIGN    16u
#define STEP_MAX     8u
#define BOX_MAX	     256u
#define CHANNELS_MAX 256u
#define PIXELS_MAX   1024u

enum { NOT_INTERLEAVED, INTERLEAVED_16, INTERLEAVED_32 };
enum { NOT_SWIZZLED, SWIZZLED_32, SWIZZLED_64, SWIZZLED_128, SWIZZLES = 7 };

/* What a map of the software GPU has in it. */
struct tensor {
	uint64_t magic;
	uint64_t addr;
	uint64_t dim[QCU_TENSOR_DIMS];
	uint32_t stride[QCU_TENSOR_DIMS]; /* in units of ROW_ALIGN */
	uint16_t box[QCU_TENSOR_DIMS];
	uint8_t step[QCU_TENSOR_DIMS];
	uint8_t what, type, rank, interleave, swizzle;
};
_Static_assert(sizeof(struct tensor) <= QCU_TENSOR_MAP_BYTES, "a tensor map");

/* Bytes of an element by CUtensorMapDataType; 0: elements of 4 and 6 bits. */
static const uint8_t tensor_bytes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0};

static bool good_address(const struct qcu_tensor_msg *t)
{
	uint32_t align = t->interleave == INTERLEAVED_32 ? 32 : ROW_ALIGN;

	return t->addr % align == 0;
}

static bool good_sides(const struct qcu_tensor_msg *t)
{
	uint32_t align = t->interleave == INTERLEAVED_32 ? 32 : ROW_ALIGN;
	uint32_t i;

	for (i = 0; i < t->rank; i++) {
		if (!t->dim[i] || t->dim[i] > 1ull << 32 || !t->step[i] || t->step[i] > STEP_MAX)
			return false;
		if (i && (t->stride[i - 1] % align || t->stride[i - 1] >= 1ull << 40))
			return false;
	}
	return true;
}

static bool good_tile(const struct qcu_tensor_msg *t)
{
	uint64_t row = (uint64_t)t->box[0] * tensor_bytes[t->type];
	uint32_t i;

	for (i = 0; i < t->rank; i++)
		if (!t->box[i] || t->box[i] > BOX_MAX)
			return false;
	if (t->interleave != NOT_INTERLEAVED || !row)
		return true;
	return row % ROW_ALIGN == 0 && (t->swizzle == NOT_SWIZZLED || t->swizzle > SWIZZLED_128 ||
					row <= 16u << t->swizzle);
}

/* The rules of CUDA's documentation. */
static bool good_tensor(const struct qcu_tensor_msg *t)
{
	bool flat = t->what == QCU_TENSOR_TILED && t->interleave == NOT_INTERLEAVED;

	if (t->type >= sizeof(tensor_bytes) || t->interleave > INTERLEAVED_32 ||
	    t->swizzle >= SWIZZLES || t->promotion > 3 || t->fill > 1)
		return false;
	if (t->rank < (flat ? 1 : 3) || !good_address(t) || !good_sides(t))
		return false;
	if (t->interleave == INTERLEAVED_32 && t->swizzle != SWIZZLED_32)
		return false;
	if (t->what == QCU_TENSOR_TILED)
		return good_tile(t);
	return t->channels && t->channels <= CHANNELS_MAX && t->pixels && t->pixels <= PIXELS_MAX;
}

static void fill_in_tensor(const struct qcu_tensor_msg *t, struct tensor *map)
{
	uint32_t i;

	map->magic = TENSOR_MAGIC;
	map->addr = t->addr;
	map->what = (uint8_t)t->what;
	map->type = (uint8_t)t->type;
	map->rank = (uint8_t)t->rank;
	map->interleave = (uint8_t)t->interleave;
	map->swizzle = (uint8_t)t->swizzle;
	for (i = 0; i < t->rank; i++) {
		map->dim[i] = t->dim[i];
		map->stride[i] = (uint32_t)(t->stride[i] / ROW_ALIGN);
		map->box[i] = (uint16_t)t->box[i];
		map->step[i] = (uint8_t)t->step[i];
	}
}

int soft_tensor_map(struct be *be, unsigned int dev, const struct qcu_tensor_msg *t, void *to)
{
	struct tensor map = {0};

	(void)dev;
	if (be->sm < 90 || t->what == QCU_TENSOR_IM2COL_WIDE)
		return QCU_ERR_NotSupported;
	if (t->what == QCU_TENSOR_MOVE) {
		memcpy(&map, t->map, sizeof(map));
		if (map.magic != TENSOR_MAGIC || t->addr % ROW_ALIGN)
			return QCU_ERR_InvalidValue;
		map.addr = t->addr;
	} else if (good_tensor(t)) {
		fill_in_tensor(t, &map);
	} else {
		return QCU_ERR_InvalidValue;
	}
	memset(to, 0, QCU_TENSOR_MAP_BYTES);
	memcpy(to, &map, sizeof(map));
	return QCU_ERR_Success;
}
