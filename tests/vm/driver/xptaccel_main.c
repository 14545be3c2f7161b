// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * An accelerator that does nothing but take its time, for tests of what is seen of one from outside.
 *
 * Each engine is a DRM scheduler; each open file has an entity on every engine. A job that the scheduler hands over
 * takes a slot of its engine and a high-resolution timer signals its hardware fence from an interrupt, as hardware
 * would. How long a job runs, whether it fails and whether it hangs is up to the one who submits it; a job that hangs
 * is ended by the scheduler's timeout, which resets its engine.
 *
 * Lifetimes: a job belongs to whoever has a reference. These are the scheduler, until it frees the job; the hardware
 * fence, which lies inside the job; and the table of its file, until somebody has waited for it or the file is closed.
 * The table also holds the job's finished fence. Nothing else may: that fence leads back to the job.
 */
#include <linux/dma-fence.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <drm/gpu_scheduler.h>

#include "xptaccel_compat.h"
#include "xptaccel_pmu.h"
#include "xptaccel_uapi.h"

#define CREATE_TRACE_POINTS
#include "xptaccel_trace.h"

#define DEVICES_MAX 4
#define ENGINES_MAX XPTACCEL_ENGINES_MAX
#define SLOTS_MAX 16
#define WAITING_MAX 4096 /* jobs of a file that nobody has waited for */
static_assert(SLOTS_MAX < 1 << XPTACCEL_RUNNING_BITS);

static unsigned int devices = 1;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "number of devices, /dev/xptaccel0 and on (1)");
static unsigned int engines = 2;
module_param(engines, uint, 0444);
MODULE_PARM_DESC(engines, "engines of each device (2)");
static unsigned int slots = 1;
module_param(slots, uint, 0444);
MODULE_PARM_DESC(slots, "jobs that an engine runs at once (1)");
static unsigned int timeout_ms = 500;
module_param(timeout_ms, uint, 0444);
MODULE_PARM_DESC(timeout_ms, "time after which an engine with a job that does not end is reset (500)");

struct job;

/* What runs one job at a time. A timeline of its own: jobs of an engine do not end in the order in which they began. */
struct slot {
	struct job *job; /* NULL: free; under the engine's lock */
	u64 fence_context;
	u64 fence_seqno;
};

struct engine {
	struct drm_gpu_scheduler scheduler;
	struct accelerator *device;
	unsigned int index;
	char name[32];
	struct xptaccel_counts *counts; /* the PMU's */
	spinlock_t lock;		/* taken in interrupts */
	struct slot slots[SLOTS_MAX];
};

struct accelerator {
	struct platform_device *platform;
	struct miscdevice misc;
	char name[16];
	struct xptaccel_pmu pmu;
	unsigned int engine_count; /* those that have been set up */
	struct engine engines[];
};

/* An open file. */
struct client {
	struct accelerator *device;
	u64 id;
	struct mutex lock;  /* jobs are armed and pushed in one order */
	struct xarray jobs; /* by number; its lock keeps a job there */
	atomic_t waiting;
	unsigned int entity_count;
	struct drm_sched_entity entities[ENGINES_MAX];
};

struct job {
	struct drm_sched_job base;
	struct kref references;
	struct rcu_head rcu;
	struct engine *engine;
	struct slot *slot;
	struct dma_fence fence; /* the hardware's; valid once started */
	spinlock_t fence_lock;
	struct dma_fence *finished; /* the scheduler's; belongs to the file's table */
	struct hrtimer timer;
	u64 number;
	u64 cookie;
	u64 execute_ns;
	u64 bytes;
	u32 flags;
	bool ended; /* under the engine's lock */
	int error;
	u64 queued_ns, started_ns, finished_ns;
};

static struct accelerator *accelerators[DEVICES_MAX];
static atomic64_t last_number, last_client;
static atomic_t jobs_alive; /* jobs that anybody still has a reference to */
/* Those that a scheduler has to free. Module-wide, so that no device must outlive the last wakeup. */
static atomic_t jobs_scheduled;
static DECLARE_WAIT_QUEUE_HEAD(jobs_freed);

static int jobs_show(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&jobs_alive));
}

static const struct kernel_param_ops jobs_ops = { .get = jobs_show };
module_param_cb(jobs, &jobs_ops, NULL, 0444);
MODULE_PARM_DESC(jobs, "to be read: jobs in memory, which are those that wait, run or were not waited for");

static void job_release(struct kref *references)
{
	struct job *job = container_of(references, struct job, references);

	kfree_rcu(job, rcu); /* others may look at a fence as long as they are in a read section */
	atomic_dec(&jobs_alive);
}

static void job_put(struct job *job)
{
	kref_put(&job->references, job_release);
}

/* ---- the hardware fence ---- */

static struct job *fence_job(struct dma_fence *fence)
{
	return container_of(fence, struct job, fence);
}

static const char *fence_driver_name(struct dma_fence *fence)
{
	return KBUILD_MODNAME;
}

static const char *fence_timeline_name(struct dma_fence *fence)
{
	return fence_job(fence)->engine->name;
}

static void fence_release(struct dma_fence *fence)
{
	job_put(fence_job(fence));
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_driver_name,
	.get_timeline_name = fence_timeline_name,
	.release = fence_release,
};

/* ---- the hardware ---- */

/* Ends a job that runs. Of an interrupt and a reset, the first does. */
static void job_end(struct job *job, int error)
{
	struct engine *engine = job->engine;
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&engine->lock, flags);
	first = !job->ended;
	if (first) {
		job->ended = true;
		job->error = error;
		job->slot->job = NULL; /* before the signal, which lets the next job come */
		job->finished_ns = ktime_get_ns();
		xptaccel_count_ended(engine->counts, job->started_ns, job->finished_ns, job->bytes, error);
	}
	spin_unlock_irqrestore(&engine->lock, flags);
	if (!first)
		return;
	if (error) {
		trace_xptaccel_error(engine->device->name, engine->index, error, &job->base.s_fence->finished);
		dma_fence_set_error(&job->fence, error);
	}
	dma_fence_signal(&job->fence);
	dma_fence_put(&job->fence);
}

static enum hrtimer_restart job_interrupt(struct hrtimer *timer)
{
	struct job *job = container_of(timer, struct job, timer);

	job_end(job, job->flags & XPTACCEL_FAIL ? -EIO : 0);
	return HRTIMER_NORESTART;
}

static struct slot *slot_take(struct engine *engine, struct job *job)
{
	struct slot *slot = NULL;
	unsigned int i;

	spin_lock_irq(&engine->lock);
	for (i = 0; i < slots && !slot; i++)
		if (!engine->slots[i].job)
			slot = &engine->slots[i];
	if (slot)
		slot->job = job;
	spin_unlock_irq(&engine->lock);
	return slot;
}

static struct dma_fence *job_run(struct drm_sched_job *base)
{
	struct job *job = container_of(base, struct job, base);

	job->slot = slot_take(job->engine, job);
	if (WARN_ON(!job->slot)) /* the scheduler knows how many there are */
		return ERR_PTR(-EBUSY);
	kref_get(&job->references);
	dma_fence_init(&job->fence, &fence_ops, &job->fence_lock, job->slot->fence_context, ++job->slot->fence_seqno);
	dma_fence_get(&job->fence); /* one reference is job_end's, one the scheduler's */
	job->started_ns = ktime_get_ns();
	xptaccel_count_started(job->engine->counts, job->started_ns);
	if (!(job->flags & XPTACCEL_HANG))
		hrtimer_start(&job->timer, ns_to_ktime(job->started_ns + job->execute_ns), HRTIMER_MODE_ABS_HARD);
	return &job->fence;
}

static struct job *slot_job(struct engine *engine, unsigned int index)
{
	struct job *job;

	spin_lock_irq(&engine->lock);
	job = engine->slots[index].job;
	if (job)
		kref_get(&job->references);
	spin_unlock_irq(&engine->lock);
	return job;
}

/* All that runs on an engine ends when it is reset: the scheduler, too, cancels what was not submitted again. */
static void engine_reset(struct engine *engine, const struct job *late)
{
	unsigned int i;

	for (i = 0; i < slots; i++) {
		struct job *job = slot_job(engine, i);

		if (!job)
			continue;
		hrtimer_cancel(&job->timer);
		job_end(job, job == late ? -ETIME : -ECANCELED);
		job_put(job);
	}
	trace_xptaccel_reset(engine->device->name, engine->index, -ETIME);
}

static enum drm_gpu_sched_stat job_timed_out(struct drm_sched_job *base)
{
	struct job *job = container_of(base, struct job, base);
	struct engine *engine = job->engine;

	drm_sched_stop(&engine->scheduler, base);
	engine_reset(engine, job);
	compat_sched_start(&engine->scheduler);
	return COMPAT_SCHED_RESET;
}

static void job_free(struct drm_sched_job *base)
{
	struct job *job = container_of(base, struct job, base);

	drm_sched_job_cleanup(base);
	job_put(job);
	if (atomic_dec_and_test(&jobs_scheduled))
		wake_up(&jobs_freed);
}

static const struct drm_sched_backend_ops scheduler_ops = {
	.run_job = job_run,
	.timedout_job = job_timed_out,
	.free_job = job_free,
};

/* ---- the table of a file's jobs ---- */

/* Before a job is armed: from then on nothing may fail. */
static int table_reserve(struct client *client, u64 number)
{
	int error = -EBUSY;

	if (atomic_inc_return(&client->waiting) <= WAITING_MAX)
		error = xa_reserve(&client->jobs, number, GFP_KERNEL);
	if (error)
		atomic_dec(&client->waiting);
	return error;
}

static void table_unreserve(struct client *client, u64 number)
{
	xa_release(&client->jobs, number);
	atomic_dec(&client->waiting);
}

/* Whoever takes a job out has its references. NULL: another one has. */
static struct job *table_take(struct client *client, u64 number)
{
	struct job *job = xa_erase(&client->jobs, number);

	if (job)
		atomic_dec(&client->waiting);
	return job;
}

static struct dma_fence *table_finished(struct client *client, u64 number)
{
	struct dma_fence *finished = NULL;
	struct job *job;

	xa_lock(&client->jobs);
	job = xa_load(&client->jobs, number);
	if (job)
		finished = dma_fence_get(job->finished);
	xa_unlock(&client->jobs);
	return finished;
}

static void table_drop(struct job *job)
{
	dma_fence_put(job->finished);
	job_put(job);
}

/* ---- ioctls ---- */

static struct job *job_new(struct client *client, const struct xptaccel_submit *arguments)
{
	struct job *job = kzalloc(sizeof(*job), GFP_KERNEL);

	if (!job)
		return NULL;
	atomic_inc(&jobs_alive);
	kref_init(&job->references);
	spin_lock_init(&job->fence_lock);
	compat_hrtimer_setup(&job->timer, job_interrupt);
	job->engine = &client->device->engines[arguments->engine];
	job->number = atomic64_inc_return(&last_number);
	job->cookie = arguments->cookie;
	job->execute_ns = arguments->execute_ns;
	job->bytes = arguments->bytes;
	job->flags = arguments->flags;
	return job;
}

/* With the client's lock held. */
static int job_push(struct client *client, struct job *job, struct xptaccel_submit *arguments)
{
	int error;

	error = table_reserve(client, job->number);
	if (error)
		return error;
	error = compat_sched_job_init(&job->base, &client->entities[arguments->engine], client, client->id);
	if (error) {
		table_unreserve(client, job->number);
		return error;
	}
	drm_sched_job_arm(&job->base);
	job->finished = dma_fence_get(&job->base.s_fence->finished);
	kref_get(&job->references); /* the scheduler's */
	atomic_inc(&jobs_scheduled);
	arguments->job = job->number;
	arguments->fence_context = job->finished->context;
	arguments->fence_seqno = job->finished->seqno;
	job->queued_ns = ktime_get_ns();
	xptaccel_count_queued(job->engine->counts);
	/* Somebody may guess the number and wait: everything else is set. */
	xa_store(&client->jobs, job->number, job, GFP_KERNEL);
	drm_sched_entity_push_job(&job->base);
	return 0;
}

static int submit(struct client *client, struct xptaccel_submit *arguments)
{
	struct job *job;
	int error;

	if (arguments->engine >= client->entity_count || arguments->flags & ~(XPTACCEL_FAIL | XPTACCEL_HANG) ||
	    !arguments->execute_ns || arguments->execute_ns > XPTACCEL_EXECUTE_MAX_NS)
		return -EINVAL;
	job = job_new(client, arguments);
	if (!job)
		return -ENOMEM;
	mutex_lock(&client->lock);
	error = job_push(client, job, arguments);
	mutex_unlock(&client->lock);
	if (error)
		job_put(job);
	return error;
}

static int wait(struct client *client, struct xptaccel_wait *arguments)
{
	struct dma_fence *finished = table_finished(client, arguments->job);
	struct job *job;
	long left;

	if (!finished)
		return -ENOENT;
	if (arguments->timeout_ns)
		left = dma_fence_wait_timeout(finished, true, nsecs_to_jiffies(arguments->timeout_ns) + 1);
	else
		left = dma_fence_is_signaled(finished);
	dma_fence_put(finished);
	if (left <= 0)
		return left ? left : -ETIME;
	job = table_take(client, arguments->job);
	if (!job)
		return -ENOENT;
	arguments->cookie = job->cookie;
	arguments->queued_ns = job->queued_ns;
	arguments->started_ns = job->started_ns;
	arguments->finished_ns = job->finished_ns;
	/* One that never ran has been cancelled by the scheduler, and only that knows why. */
	arguments->error = job->started_ns ? job->error : job->finished->error;
	arguments->reserved = 0;
	table_drop(job);
	return 0;
}

static long client_ioctl(struct file *file, unsigned int command, unsigned long address)
{
	void __user *user = (void __user *)address;
	union {
		struct xptaccel_submit submit;
		struct xptaccel_wait wait;
	} arguments;
	size_t size = _IOC_SIZE(command);
	bool is_submit = command == XPTACCEL_SUBMIT || command == XPTACCEL_SUBMIT_UNSIZED;
	int error;

	if (!is_submit && command != XPTACCEL_WAIT)
		return -ENOTTY;
	memset(&arguments, 0, sizeof(arguments));
	if (copy_from_user(&arguments, user, size))
		return -EFAULT;
	if (is_submit)
		error = submit(file->private_data, &arguments.submit);
	else
		error = wait(file->private_data, &arguments.wait);
	if (!error && copy_to_user(user, &arguments, size))
		error = -EFAULT;
	return error;
}

/* ---- files ---- */

static void client_free(struct client *client)
{
	unsigned long number = 0;

	while (client->entity_count)
		drm_sched_entity_destroy(&client->entities[--client->entity_count]);
	while (xa_find(&client->jobs, &number, ULONG_MAX, XA_PRESENT))
		table_drop(table_take(client, number));
	xa_destroy(&client->jobs);
	mutex_destroy(&client->lock);
	kfree(client);
}

static int client_open(struct inode *inode, struct file *file)
{
	struct accelerator *device = container_of(file->private_data, struct accelerator, misc);
	struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);
	int error;

	if (!client)
		return -ENOMEM;
	client->device = device;
	client->id = atomic64_inc_return(&last_client);
	mutex_init(&client->lock);
	xa_init(&client->jobs);
	while (client->entity_count < device->engine_count) {
		struct drm_gpu_scheduler *scheduler = &device->engines[client->entity_count].scheduler;

		error = drm_sched_entity_init(&client->entities[client->entity_count], DRM_SCHED_PRIORITY_NORMAL,
					      &scheduler, 1, NULL);
		if (error) {
			client_free(client);
			return error;
		}
		client->entity_count++;
	}
	file->private_data = client;
	return 0;
}

static int client_release(struct inode *inode, struct file *file)
{
	client_free(file->private_data);
	return 0;
}

static const struct file_operations file_ops = {
	.owner = THIS_MODULE,
	.open = client_open,
	.release = client_release,
	.unlocked_ioctl = client_ioctl,
};

/* ---- devices ---- */

static int engine_init(struct accelerator *device, unsigned int index)
{
	struct engine *engine = &device->engines[index];
	unsigned int i;

	engine->device = device;
	engine->index = index;
	engine->counts = &device->pmu.counts[index];
	snprintf(engine->name, sizeof(engine->name), "%s.%u", device->name, index);
	spin_lock_init(&engine->lock);
	for (i = 0; i < slots; i++)
		engine->slots[i].fence_context = dma_fence_context_alloc(1);
	return compat_sched_init(&engine->scheduler, &scheduler_ops, slots, msecs_to_jiffies(timeout_ms), engine->name,
				 &device->platform->dev);
}

/* Nobody has it open and its jobs are gone. */
static void accelerator_free(struct accelerator *device)
{
	xptaccel_pmu_unregister(&device->pmu);
	while (device->engine_count)
		drm_sched_fini(&device->engines[--device->engine_count].scheduler);
	platform_device_unregister(device->platform);
	kfree(device);
}

static struct accelerator *accelerator_new(unsigned int index)
{
	struct accelerator *device = kzalloc(struct_size(device, engines, engines), GFP_KERNEL);
	int error;

	if (!device)
		return ERR_PTR(-ENOMEM);
	snprintf(device->name, sizeof(device->name), "xptaccel%u", index);
	/* What a real accelerator has from its bus: a device that the scheduler's events can name. */
	device->platform = platform_device_register_simple(device->name, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device->platform)) {
		error = PTR_ERR(device->platform);
		kfree(device);
		return ERR_PTR(error);
	}
	for (; device->engine_count < engines; device->engine_count++) {
		error = engine_init(device, device->engine_count);
		if (error)
			goto destroy;
	}
	error = xptaccel_pmu_register(&device->pmu, index, engines);
	if (error)
		goto destroy;
	device->misc.minor = MISC_DYNAMIC_MINOR;
	device->misc.name = device->name;
	device->misc.fops = &file_ops;
	device->misc.parent = &device->platform->dev;
	error = misc_register(&device->misc);
	if (error)
		goto destroy;
	return device;
destroy:
	accelerator_free(device);
	return ERR_PTR(error);
}

static void destroy_all(void)
{
	unsigned int i;

	for (i = 0; i < DEVICES_MAX && accelerators[i]; i++)
		misc_deregister(&accelerators[i]->misc);
	/* What was submitted and never waited for may still run. */
	wait_event(jobs_freed, !atomic_read(&jobs_scheduled));
	for (i = 0; i < DEVICES_MAX && accelerators[i]; i++)
		accelerator_free(accelerators[i]);
	rcu_barrier(); /* of those that still look at a fence, whose functions are here */
}

static int __init xptaccel_init(void)
{
	unsigned int i;

	if (!devices || devices > DEVICES_MAX || !engines || engines > ENGINES_MAX || !slots || slots > SLOTS_MAX ||
	    !timeout_ms)
		return -EINVAL;
	for (i = 0; i < devices; i++) {
		struct accelerator *device = accelerator_new(i);

		if (IS_ERR(device)) {
			destroy_all();
			return PTR_ERR(device);
		}
		accelerators[i] = device;
	}
	return 0;
}

static void __exit xptaccel_exit(void)
{
	destroy_all();
}

module_init(xptaccel_init);
module_exit(xptaccel_exit);
MODULE_DESCRIPTION("Accelerator that takes its time, for tests");
MODULE_LICENSE("Dual BSD/GPL");
