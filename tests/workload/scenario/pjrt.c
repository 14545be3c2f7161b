/* SPDX-License-Identifier: BSD-2-Clause */
/* A PJRT plugin, called through the table that it fills at run time; every execution is asynchronous. */
#include "standin/pjrt.h"
#include "workload.h"

#define FLOAT32 11 /* element type */

#ifdef WORKLOAD_LINKED
const struct pjrt_api *GetPjrtApi(void);
#endif

struct pjrt_run {
	struct run run;
	const struct pjrt_api *api;
	void *client;
	void *executables[PROGRAMS_MAX]; /* loaded */
	float data[256];
};

/* The table is asked for at once, as frameworks do when they load a plugin; the call that fills it is not one to trace. */
static bool pjrt_bind(struct run *run, void *library)
{
	struct pjrt_run *pjrt = (struct pjrt_run *)run;
	const struct pjrt_api *(*get_api)(void);
	bool complete = true;

#ifdef WORKLOAD_LINKED
	(void)library;
	get_api = GetPjrtApi;
#else
	get_api = workload_symbol(library, "GetPjrtApi", &complete);
#endif
	if (complete)
		pjrt->api = get_api();
	return complete;
}

/* A call through the table. The status is an error object: 0 is success. */
static void *slot_call(struct pjrt_run *pjrt, struct ledger *ledger, enum pjrt_slot slot, void *args, struct call *call)
{
	uint64_t start = clock_now();
	void *error = pjrt->api->slot[slot](args);

	call->nanoseconds = clock_now() - start;
	if (!error)
		call->status = SOME(0);
	ledger_add(ledger, call);
	return error;
}

static void name_executable(struct pjrt_run *pjrt, void *loaded)
{
	struct pjrt_get_executable_args get = { .head = { sizeof(get), NULL }, .loaded = loaded };
	struct pjrt_name_args name = { .head = { sizeof(name), NULL } };
	struct pjrt_handle_args destroy = { .head = { sizeof(destroy), NULL } };

	slot_call(pjrt, pjrt->run.ledger, PJRT_LOADED_GET_EXECUTABLE, &get,
		  &(struct call){ .function = "PJRT_LoadedExecutable_GetExecutable" });
	name.executable = get.executable;
	slot_call(pjrt, pjrt->run.ledger, PJRT_EXECUTABLE_NAME, &name,
		  &(struct call){ .function = "PJRT_Executable_Name" });
	destroy.handle = get.executable;
	slot_call(pjrt, pjrt->run.ledger, PJRT_EXECUTABLE_DESTROY, &destroy,
		  &(struct call){ .function = "PJRT_Executable_Destroy" });
}

static void pjrt_begin(struct run *run)
{
	struct pjrt_run *pjrt = (struct pjrt_run *)run;
	struct pjrt_client_args client = { .head = { sizeof(client), NULL } };

	slot_call(pjrt, run->ledger, PJRT_CLIENT_CREATE, &client, &(struct call){ .function = "PJRT_Client_Create" });
	pjrt->client = client.client;
	for (unsigned int i = 0; i < run->options->programs; i++) {
		const char *name = program_name("pjrt_program", i, run->round);
		struct pjrt_program program = { .head = { sizeof(program), NULL },
						.code = name,
						.code_size = 1000 + i };
		struct pjrt_compile_args compile = { .head = { sizeof(compile), NULL },
						     .client = pjrt->client,
						     .program = &program };
		struct call call = { .function = "PJRT_Client_Compile", .program = name, .size = SOME(1000 + i) };

		slot_call(pjrt, run->ledger, PJRT_CLIENT_COMPILE, &compile, &call);
		pjrt->executables[i] = compile.executable;
		name_executable(pjrt, compile.executable);
	}
}

static void await(struct pjrt_run *pjrt, struct ledger *ledger, void *event)
{
	struct pjrt_handle_args args = { .head = { sizeof(args), NULL }, .handle = event };

	slot_call(pjrt, ledger, PJRT_EVENT_AWAIT, &args, &(struct call){ .function = "PJRT_Event_Await" });
	slot_call(pjrt, ledger, PJRT_EVENT_DESTROY, &args, &(struct call){ .function = "PJRT_Event_Destroy" });
}

static void to_device_and_back(struct pjrt_run *pjrt, struct ledger *ledger)
{
	int64_t dims[] = { 256 };
	struct pjrt_from_host_args from = { .head = { sizeof(from), NULL },
					    .client = pjrt->client,
					    .data = pjrt->data,
					    .type = FLOAT32,
					    .dims = dims,
					    .num_dims = 1 };
	struct pjrt_to_host_args to = { .head = { sizeof(to), NULL },
					.destination = pjrt->data,
					.destination_size = sizeof(pjrt->data) };
	struct pjrt_handle_args destroy = { .head = { sizeof(destroy), NULL } };

	slot_call(pjrt, ledger, PJRT_BUFFER_FROM_HOST, &from,
		  &(struct call){ .function = "PJRT_Client_BufferFromHostBuffer" });
	await(pjrt, ledger, from.done_event);
	to.source = from.buffer;
	slot_call(pjrt, ledger, PJRT_BUFFER_TO_HOST, &to,
		  &(struct call){ .function = "PJRT_Buffer_ToHostBuffer", .size = SOME(sizeof(pjrt->data)) });
	await(pjrt, ledger, to.event);
	destroy.handle = from.buffer;
	slot_call(pjrt, ledger, PJRT_BUFFER_DESTROY, &destroy, &(struct call){ .function = "PJRT_Buffer_Destroy" });
}

static void pjrt_execute(struct worker *worker, unsigned long number)
{
	struct pjrt_run *pjrt = (struct pjrt_run *)worker->run;
	unsigned int i = number % worker->run->options->programs;
	const char *name = program_name("pjrt_program", i, worker->run->round);
	void *events[1] = { NULL };
	struct pjrt_execute_args execute = { .head = { sizeof(execute), NULL },
					     .executable = pjrt->executables[i],
					     .num_devices = 1,
					     .device_complete_events = events };
	struct call call = { .function = "PJRT_LoadedExecutable_Execute",
			     .program = name,
			     .handle = SOME(pjrt->executables[i]) };
	uint64_t start = clock_now();

	if (!slot_call(pjrt, worker->ledger, PJRT_LOADED_EXECUTE, &execute, &call)) {
		await(pjrt, worker->ledger, events[0]);
		workload_inference(worker->ledger, "PJRT_LoadedExecutable_Execute", name,
				   (uintptr_t)pjrt->executables[i], start);
	}
	if (number % 4 == 0)
		to_device_and_back(pjrt, worker->ledger);
}

static void pjrt_end(struct run *run)
{
	struct pjrt_run *pjrt = (struct pjrt_run *)run;
	struct pjrt_handle_args destroy = { .head = { sizeof(destroy), NULL } };

	for (unsigned int i = 0; i < run->options->programs; i++) {
		struct call call = { .function = "PJRT_LoadedExecutable_Destroy",
				     .handle = SOME(pjrt->executables[i]) };

		destroy.handle = pjrt->executables[i];
		slot_call(pjrt, run->ledger, PJRT_LOADED_DESTROY, &destroy, &call);
	}
	destroy.handle = pjrt->client;
	slot_call(pjrt, run->ledger, PJRT_CLIENT_DESTROY, &destroy,
		  &(struct call){ .function = "PJRT_Client_Destroy" });
}

const struct scenario scenario_pjrt = {
	.runtime = "pjrt",
	.library = "pjrt_plugin.so",
	.run_size = sizeof(struct pjrt_run),
	.bind = pjrt_bind,
	.load = pjrt_begin,
	.execute = pjrt_execute,
	.unload = pjrt_end,
};
