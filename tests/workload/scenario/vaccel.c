/* SPDX-License-Identifier: BSD-2-Clause */
/* vAccel: TensorFlow models on even programs, Torch from blobs on odd ones; every run stands inside a named region. */
#include "workload.h"

#define MODEL 2 /* type of a resource */

struct region {
	const char *name;
	bool name_owned;
	size_t nr_entries;
	void *samples;
	size_t size;
};

struct blob {
	uint32_t type;
	char *name;
	char *path;
	bool path_owned;
	uint8_t *data;
	bool data_owned;
	size_t size;
};

#define FUNCTIONS(X)                                                                                              \
	X(vaccel_session_new, int, void **, uint32_t)                                                             \
	X(vaccel_session_delete, int, void *)                                                                     \
	X(vaccel_resource_new, int, void **, const char *, int)                                                   \
	X(vaccel_resource_from_blobs, int, void **, const struct blob **, size_t, int)                            \
	X(vaccel_resource_delete, int, void *)                                                                    \
	X(vaccel_resource_register, int, void *, void *)                                                          \
	X(vaccel_resource_unregister, int, void *, void *)                                                        \
	X(vaccel_tf_model_load, int, void *, void *, void *)                                                      \
	X(vaccel_tf_model_run, int, void *, void *, const void *, const void *, void *const *, int, const void *, \
	  void **, int, void *)                                                                                   \
	X(vaccel_tf_model_unload, int, void *, void *, void *)                                                    \
	X(vaccel_torch_model_load, int, void *, void *)                                                           \
	X(vaccel_torch_model_run, int, void *, void *, const void *, void **, int, void **, int)                  \
	X(vaccel_prof_region_start, int, struct region *)                                                         \
	X(vaccel_prof_region_stop, int, const struct region *)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
};

struct vaccel_run {
	struct run run;
	struct functions functions;
	void *session;
	void *models[PROGRAMS_MAX];
};

static bool vaccel_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct vaccel_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void vaccel_begin(struct run *run)
{
	struct vaccel_run *vaccel = (struct vaccel_run *)run;
	struct functions *functions = &vaccel->functions;
	struct ledger *ledger = run->ledger;

	CALL(vaccel_session_new, (&vaccel->session, 0));
	for (unsigned int i = 0; i < run->options->programs; i++) {
		const char *name = program_name("/models/vaccel", i, run->round);
		const struct blob blob = { .name = (char *)name, .path = "/run/blob" }, *blobs[] = { &blob };
		void **model = &vaccel->models[i];

		if (i % 2)
			CALL(vaccel_resource_from_blobs, (model, blobs, 1, MODEL), .program = name,
			     .handle = SOME(*model));
		else
			CALL(vaccel_resource_new, (model, name, MODEL), .program = name, .handle = SOME(*model));
		CALL(vaccel_resource_register, (*model, vaccel->session));
		if (i % 2)
			CALL(vaccel_torch_model_load, (vaccel->session, *model));
		else
			CALL(vaccel_tf_model_load, (vaccel->session, *model, NULL));
	}
}

static void vaccel_execute(struct worker *worker, unsigned long number)
{
	struct vaccel_run *vaccel = (struct vaccel_run *)worker->run;
	struct functions *functions = &vaccel->functions;
	struct ledger *ledger = worker->ledger;
	unsigned int i = number % worker->run->options->programs;
	const char *name = program_name("/models/vaccel", i, worker->run->round);
	struct region region = { .name = "vaccel_user_region" };
	void *model = vaccel->models[i];

	CALL(vaccel_prof_region_start, (&region), .program = region.name);
	if (i % 2)
		CALL(vaccel_torch_model_run, (vaccel->session, model, NULL, NULL, 0, NULL, 0), .program = name,
		     .handle = SOME(model));
	else
		CALL(vaccel_tf_model_run, (vaccel->session, model, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL),
		     .program = name, .handle = SOME(model));
	CALL(vaccel_prof_region_stop, (&region), .program = region.name);
}

static void vaccel_end(struct run *run)
{
	struct vaccel_run *vaccel = (struct vaccel_run *)run;
	struct functions *functions = &vaccel->functions;
	struct ledger *ledger = run->ledger;

	for (unsigned int i = 0; i < run->options->programs; i++) {
		void *model = vaccel->models[i];

		if (i % 2 == 0)
			CALL(vaccel_tf_model_unload, (vaccel->session, model, NULL));
		CALL(vaccel_resource_unregister, (model, vaccel->session));
		CALL(vaccel_resource_delete, (model));
	}
	CALL(vaccel_session_delete, (vaccel->session));
}

const struct scenario scenario_vaccel = {
	.runtime = "vaccel",
	.library = "libvaccel.so",
	.run_size = sizeof(struct vaccel_run),
	.bind = vaccel_bind,
	.load = vaccel_begin,
	.execute = vaccel_execute,
	.unload = vaccel_end,
};
