// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings of /dev/qcuda and their page faults. A mapping is a group (qcuda_group.c).
 *
 * A session's mappings belong to the session's own file, not to the file that was opened. A forked
 * child keeps the mapped file open, but the session must end with the parent. The session's file
 * has its own address space (struct address_space). The offset of a page in it is the page's
 * address. This is how chunks that a fork shares are taken out of page tables.
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "qcuda.h"

#define QCUD_FS_MAGIC 0x44554351

static struct vfsmount *qcud_mount;
static int qcud_mounts;

static int qcud_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, QCUD_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type qcud_fs = {
	.name = "qcuda",
	.owner = THIS_MODULE,
	.init_fs_context = qcud_fs_init,
	.kill_sb = kill_anon_super,
};

static int qcud_memory_release(struct inode *unused, struct file *file)
{
	iput(file->private_data);
	simple_release_fs(&qcud_mount, &qcud_mounts);
	return 0;
}

static const struct file_operations qcud_memory_fops = {
	.owner = THIS_MODULE,
	.release = qcud_memory_release,
};

/* Makes the file that the mappings of a new session will belong to. */
struct file *qcud_memory_file(void)
{
	struct inode *inode;
	struct file *file;
	int ret;

	ret = simple_pin_fs(&qcud_fs, &qcud_mount, &qcud_mounts);
	if (ret)
		return ERR_PTR(ret);
	inode = alloc_anon_inode(qcud_mount->mnt_sb);
	if (IS_ERR(inode)) {
		file = ERR_CAST(inode);
		goto release;
	}
	file = anon_inode_getfile("[qcuda]", &qcud_memory_fops, inode, O_RDWR);
	if (IS_ERR(file))
		goto put;
	file->f_mapping = inode->i_mapping;
	return file;

put:
	iput(inode);
release:
	simple_release_fs(&qcud_mount, &qcud_mounts);
	return file;
}

static vm_fault_t qcud_vma_fault(struct vm_fault *vmf)
{
	struct qcud_group *group = vmf->vma->vm_private_data;
	u64 at = ((u64)vmf->pgoff << PAGE_SHIFT) - group->mem.start;
	unsigned long index = qcud_chunk_index(&group->mem, vmf->pgoff);
	struct qcud_chunk *chunk;
	vm_fault_t ret;

	mutex_lock(&group->mem.lock);
	while (group->moves && !qcud_managed_here(group, at)) {
		mutex_unlock(&group->mem.lock);
		ret = qcud_managed_fault(vmf, group, at);
		if (ret)
			return ret;
		mutex_lock(&group->mem.lock);
	}
	chunk = qcud_group_chunk(group, index, QCUD_USE_FAULT);
	if (IS_ERR(chunk)) {
		ret = PTR_ERR(chunk) == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
	} else {
		struct qcud_span part = group->moves ? qcud_managed_touched(group, chunk, at)
						     : qcud_chunk_span(&group->mem, index);

		ret = qcud_chunk_insert(vmf, &group->mem, index, chunk, &part);
		qcud_chunk_count(group, chunk,
				 chunk->counted - min_t(u64, chunk->counted,
							(part.to - part.from) >> PAGE_SHIFT));
	}
	mutex_unlock(&group->mem.lock);
	return ret;
}

/*
 * After a fork the child gets a snapshot. Else mremap has copied the VMA to move it: one more
 * reference.
 */
static void qcud_vma_open(struct vm_area_struct *vma)
{
	struct qcud_group *group = vma->vm_private_data;

	if (vma->vm_mm != group->mm && READ_ONCE(group->moves))
		qcud_managed_fork(vma, group);
	else if (vma->vm_mm != group->mm)
		qcud_fork(vma, &group->mem, group, true);
	else
		kref_get(&group->refs);
}

static void qcud_vma_close(struct vm_area_struct *vma)
{
	struct qcud_group *group = vma->vm_private_data;

	/* mremap makes a copy of the VMA and gives it up again. Its end does not end the group. */
	if (vma->vm_start == group->mem.start) {
		qcud_group_count(group);
		qcud_group_close(group);
	}
	qcud_group_put(group);
}

/* A mapping cannot be split: a piece of it would be a group that is not in the tree. */
static int qcud_vma_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

/* A mapping cannot move: the mirror has the pages at their first address. */
static int qcud_vma_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static const struct vm_operations_struct qcud_vm_ops = {
	.open = qcud_vma_open,
	.close = qcud_vma_close,
	.may_split = qcud_vma_may_split,
	.mremap = qcud_vma_mremap,
	.fault = qcud_vma_fault,
};

static void qcud_vma_set_flags(struct vm_area_struct *vma)
{
	/*
	 * MIXEDMAP: the VMA is filled with vm_insert_pages(). DONTEXPAND: a group does not grow.
	 * WIPEONFORK: a child has none of the pages in its page tables when qcud_fork() is called.
	 */
	unsigned long set = VM_MIXEDMAP | VM_DONTEXPAND | VM_WIPEONFORK;

#ifdef QCUD_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, set);
	vm_flags_clear(vma, VM_MAYEXEC);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~VM_MAYEXEC;
#endif
}

int qcud_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct qcud_session *session = file->private_data;
	struct qcud_group *group;
	int ret;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	ret = READ_ONCE(session->queue->dead);
	if (ret)
		return ret;

	group = qcud_group_new(session, vma->vm_start, vma->vm_end);
	if (!group)
		return -ENOMEM;
	ret = qcud_group_log(group);
	if (ret) {
		qcud_group_put(group);
		return ret;
	}
	/* The VMA has one reference. This one lasts until the pages are freed. */
	kref_get(&group->refs);
	qcud_vma_set_flags(vma);
	vma_set_file(vma, session->memory);
	vma->vm_pgoff = vma->vm_start >> PAGE_SHIFT;
	vma->vm_private_data = group;
	vma->vm_ops = &qcud_vm_ops;
	return 0;
}
