/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operators.h"

#include "model_records.h"

#define GEMM 0x7f0000001000u
#define RELU 0x7f0000002000u
#define SESSION U(0x5000)

static struct fixture *fixture_steps(void)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_text(f, XPT_RECORD_CLASS, 1, 1, GEMM, "rt::Gemm<float>"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_CLASS, 1, 1, RELU, "rt::Relu"), 0);
	return f;
}

static void step(struct fixture *f, __u64 object, __u64 class, __u64 inference, __u64 start, __u64 end)
{
	struct call_record record = call_make(TOY_OPERATOR, 1, 1, start, end, 4, object, class, SESSION, inference);

	record.call.depth = inference ? 1 : 0;
	if (!inference)
		record.call.valid = 3;
	cr_assert_eq(feed_call(f, record), 0);
}

static void run(struct fixture *f, __u64 start, __u64 end)
{
	CALL_1(f, TOY_EXECUTE, 1, 1, start, end, 4, SESSION, U(0), U(0), U(0));
}

static const struct model_operator *nth(const struct fixture *f, size_t index)
{
	cr_assert_lt(index, model_operator_count(f->model));
	return model_operator(f->model, index);
}

static void flush(struct fixture *f)
{
	cr_assert_eq(model_flush(f->model), 0);
}

Test(model_operator_operators, named_and_counted)
{
	struct fixture *f = fixture_steps();
	const struct model_operator *op;
	const struct model_program *program;

	for (__u64 t = 100; t < 300; t += 100) {
		step(f, 0x10, GEMM, t, t + 10, t + 30);
		step(f, 0x20, RELU, t, t + 30, t + 35);
		step(f, 0x30, GEMM, t, t + 40, t + 50);
		run(f, t, t + 80);
	}
	flush(f);
	cr_assert_eq(model_operator_count(f->model), 3);
	op = nth(f, 0);
	cr_expect_str_eq(op->label, "Gemm#1");
	cr_expect_str_eq(op->type, "Gemm");
	cr_expect_str_eq(op->class, "rt::Gemm<float>");
	cr_expect_null(op->name);
	cr_expect_eq(op->index, -1);
	cr_expect_eq(op->recorded, 2);
	cr_expect_eq(op->self_time, 40);
	cr_expect_eq(op->unassigned, 0);
	cr_expect_eq(statistics_sum(op->duration), 40);
	cr_expect_str_eq(nth(f, 1)->label, "Relu#1");
	cr_expect_str_eq(nth(f, 2)->label, "Gemm#2");
	program = op->program;
	cr_assert_not_null(program);
	cr_expect_eq(program->handle, SESSION);
	cr_expect_eq(program->recorded, 2, "its steps are no inferences");
	cr_expect_eq(program->stepped, 2);
	cr_expect_eq(program->stepped_time, 160);
	cr_expect_eq(program->covered_time, 70);
	cr_expect_eq(model_call_total_count(f->model), 0, "nor are they among the other calls");
	cr_expect_eq(seen_nth(f, EVENT_CALL, 0)->event.call.op, op);
	cr_expect_eq(seen_nth(f, EVENT_CALL, 0)->event.call.inference, 100);
	cr_expect_null(seen_nth(f, EVENT_CALL, 3)->event.call.op);
	fixture_free(f);
}

Test(model_operator_operators, reported_of_the_node)
{
	struct fixture *f = fixture_steps();

	cr_assert_eq(feed_text(f, XPT_RECORD_NODE, 1, 2, 0x10,
			       "{\"class\":139637976731648,\"name\":\"/fc/Gemm\",\"type\":\"FusedGemm\",\"index\":7,"
			       "\"provider\":\"CPUExecutionProvider\"}"),
		     0);
	cr_assert_eq(feed_text(f, XPT_RECORD_NODE, 1, 2, 0x20, "{\"class\":1,\"name\":\"of another object\"}"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_NODE, 1, 2, 0x30, "{\"class\":139637976731648}"), 0);
	step(f, 0x10, GEMM, 100, 110, 130);
	step(f, 0x20, RELU, 100, 130, 140);
	step(f, 0x30, GEMM, 100, 140, 150);
	run(f, 100, 200);
	flush(f);
	cr_expect_str_eq(nth(f, 0)->label, "/fc/Gemm");
	cr_expect_str_eq(nth(f, 0)->type, "FusedGemm");
	cr_expect_str_eq(nth(f, 0)->provider, "CPUExecutionProvider");
	cr_expect_eq(nth(f, 0)->index, 7);
	cr_expect_str_eq(nth(f, 1)->label, "Relu#1");
	cr_expect_null(nth(f, 1)->provider);
	cr_expect_str_eq(nth(f, 2)->label, "Gemm#1");
	fixture_free(f);
}

Test(model_operator_operators, damaged)
{
	static const char *const bad[] = { "", "[]", "{}", "{\"class\":0}", "{\"class\":\"a\"}", "{\"class\":1e300}" };
	struct fixture *f = fixture_steps();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(feed_text(f, XPT_RECORD_NODE, 1, 2, 0x10, bad[i]), 0);
		cr_expect_eq(model_flush(f->model), -EBADMSG, "%s", bad[i]);
	}
	fixture_free(f);
}

Test(model_operator_operators, of_no_known_inference)
{
	struct fixture *f = fixture_steps();

	step(f, 0x10, GEMM, 0, 110, 130);
	step(f, 0x10, GEMM, 200, 210, 230);
	run(f, 200, 300);
	step(f, 0x10, 0x99, 0, 310, 330);
	flush(f);
	cr_assert_eq(model_operator_count(f->model), 2);
	cr_expect_eq(nth(f, 0)->recorded, 2);
	cr_expect_eq(nth(f, 0)->unassigned, 1);
	cr_expect_eq(nth(f, 0)->self_time, 20, "of the inference only");
	cr_expect_not_null(nth(f, 0)->program, "it was found later");
	cr_expect_str_eq(nth(f, 1)->label, "operator#1", "its class is not reported");
	cr_expect_str_eq(nth(f, 1)->class, "");
	cr_expect_null(nth(f, 1)->program);
	fixture_free(f);
}

/* The address of an object that is gone is another object's. */
Test(model_operator_operators, objects_of_other_lives)
{
	struct fixture *f = fixture_steps();

	step(f, 0x10, GEMM, 100, 110, 130);
	run(f, 100, 200);
	CALL_1(f, TOY_UNLOAD, 1, 1, U(210), U(220), 2, SESSION, U(0));
	step(f, 0x10, GEMM, 300, 310, 330);
	run(f, 300, 400);
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 1, 0, 500, "new"), 0);
	step(f, 0x10, GEMM, 600, 610, 630);
	run(f, 600, 700);
	flush(f);
	cr_assert_eq(model_operator_count(f->model), 3);
	cr_expect_eq(nth(f, 0)->program->generation, 0);
	cr_expect_eq(nth(f, 1)->program->generation, 1);
	cr_expect_str_eq(nth(f, 1)->label, "Gemm#1");
	cr_expect_str_eq(nth(f, 2)->label, "operator#1", "classes are those of the file that ran before");
	cr_expect_eq(nth(f, 0)->recorded, 1);
	fixture_free(f);
}

Test(model_operator_operators, too_many)
{
	struct fixture *f = fixture_steps();

	f->quiet = true;
	for (__u64 i = 1; i <= MODEL_OPERATORS_MAX + 10; i++)
		step(f, 16 * i, GEMM, 100, 100 + i, 101 + i);
	run(f, 100, 1000000);
	flush(f);
	cr_expect_eq(model_operator_count(f->model), MODEL_OPERATORS_MAX);
	cr_expect_eq(model_lost(f->model, XPT_LOSS_NAMES), 10);
	fixture_free(f);
}

/* Functions without objects: one operator a class, called as its type, with its own time where there is no program. */
Test(model_operator_operators, without_objects)
{
	struct fixture *f = fixture_steps();
	const struct {
		__u64 class, start, end;
		unsigned int depth;
	} calls[] = {
		{ RELU, 120, 130, 1 },
		{ GEMM, 110, 150, 0 },
		{ RELU, 200, 230, 0 },
		{ RELU, 310, 315, 1 },
		/* The one around the last has thrown: what was in it is in no other. */
		{ GEMM, 330, 370, 0 },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct call_record record = call_make(TOY_OPERATOR, 1, 1, calls[i].start, calls[i].end, 4, U(0),
						      calls[i].class, U(0), U(0));

		record.call.depth = calls[i].depth;
		record.call.valid = 2;
		cr_assert_eq(feed_call(f, record), 0);
	}
	flush(f);
	cr_assert_eq(model_operator_count(f->model), 2);
	cr_expect_str_eq(nth(f, 0)->label, "Relu");
	cr_expect_str_eq(nth(f, 0)->class, "rt::Relu");
	cr_expect_null(nth(f, 0)->program);
	cr_expect_eq(nth(f, 0)->recorded, 3);
	cr_expect_eq(nth(f, 0)->unassigned, 3);
	cr_expect_eq(nth(f, 0)->self_time, 10 + 30 + 5);
	cr_expect_str_eq(nth(f, 1)->label, "Gemm");
	cr_expect_eq(nth(f, 1)->recorded, 2);
	cr_expect_eq(nth(f, 1)->self_time, 30 + 40);
	fixture_free(f);
}

/* A record with this depth, in the inference that begins at 1000. */
static void nested(struct fixture *f, unsigned int spec, unsigned int depth, __u64 start, __u64 end)
{
	struct call_record record = spec == TOY_OPERATOR ?
					    call_make(spec, 1, 1, start, end, 4, start, U(GEMM), SESSION, U(1000)) :
					    call_make(spec, 1, 1, start, end, 2, U(64), U(0));

	record.call.depth = (__u8)depth;
	cr_assert_eq(feed_call(f, record), 0);
}

/* Costs: 100 an operator, 40 of it between its times; 30 and 10 a copy; 70 and 20 an inference. */
Test(model_operator_operators, tracing)
{
	struct fixture *f = fixture_steps();
	const struct model_program *program;

	cr_assert_eq(feed_text(f, XPT_RECORD_COST, 0, 0, TOY_OPERATOR, "{\"cost_ns\":100,\"inside_ns\":40}"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_COST, 0, 0, TOY_COPY, "{\"cost_ns\":30,\"inside_ns\":10}"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_COST, 0, 0, TOY_EXECUTE, "{\"cost_ns\":70,\"inside_ns\":20}"), 0);
	nested(f, TOY_COPY, 0, 100, 200); /* before the inference, and in nothing */
	nested(f, TOY_COPY, 3, 1300, 1400);
	nested(f, TOY_OPERATOR, 2, 1200, 1500);
	nested(f, TOY_COPY, 2, 1600, 1700);
	nested(f, TOY_OPERATOR, 1, 1100, 2000);
	nested(f, TOY_OPERATOR, 1, 2100, 2200);
	nested(f, TOY_COPY, 1, 2300, 2400);
	run(f, 1000, 3000);
	run(f, 4000, 5000);
	flush(f);
	cr_assert_eq(model_operator_count(f->model), 3);
	cr_expect_eq(nth(f, 0)->tracing, 40 + 30, "the inner one with its copy");
	cr_expect_eq(nth(f, 1)->tracing, 40 + (100 + 30) + 30, "the outer one with all in it");
	cr_expect_eq(nth(f, 2)->tracing, 40);
	program = nth(f, 0)->program;
	cr_assert_eq(statistics_count(program->tracing), 2);
	cr_expect_eq(statistics_max(program->tracing), 20 + (100 + 100 + 30 + 30) + 100 + 30);
	cr_expect_eq(statistics_min(program->tracing), 20, "nothing is in the second");
	cr_expect_eq(program->tracing_inside, 390);
	cr_expect_eq(program->stepped_tracing, 410);
	cr_expect_eq(program->covered_tracing, 200 + 40);
	fixture_free(f);
}

/* Of another thread, and where no cost is known. */
Test(model_operator_operators, tracing_of_others)
{
	struct fixture *f = fixture_steps();
	const struct model_program *program;

	nested(f, TOY_OPERATOR, 1, 1100, 1200);
	cr_assert_eq(feed_pass(f, 1300), 0);
	cr_assert_eq(feed_pass(f, 1310), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_COST, 0, 0, TOY_COPY, "{\"cost_ns\":30,\"inside_ns\":10}"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_COST, 0, 0, TOY_EXECUTE, "{\"cost_ns\":70,\"inside_ns\":20}"), 0);
	CALL_1(f, TOY_COPY, 1, 2, U(1400), U(1500), 2, U(64), U(0));
	run(f, 1350, 2000);
	flush(f);
	cr_expect_eq(nth(f, 0)->tracing, 0);
	program = model_program(f->model, 0);
	cr_expect_eq(statistics_max(program->tracing), 20);
	fixture_free(f);
}

static void expect_type(const char *name, const char *type)
{
	char text[64];

	operator_class_type(name, text, sizeof(text));
	cr_expect_str_eq(text, type, "%s: %s", name, text);
}

Test(model_operator_operators, class_type)
{
	expect_type("onnxruntime::contrib::FusedGemm<float>", "FusedGemm");
	expect_type("onnxruntime::Gemm<float>", "Gemm");
	expect_type("onnxruntime::Pool<float, onnxruntime::MaxPool<8> >", "Pool");
	expect_type("(anonymous namespace)::Hidden", "Hidden");
	expect_type("a<b::c>::d<(e::f)0>", "d");
	expect_type("Relu", "Relu");
	expect_type("", "");
	expect_type("a::", "a::");
	expect_type("<x>", "<x>");
	expect_type(">>>a", ">>>a");
	expect_type("a:b", "a:b");
	expect_type("::a", "a");
	expect_type("a::<lambda(int)>", "a::<lambda(int)>");
}

Test(model_operator_operators, class_type_is_cut)
{
	char name[300], text[8];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	operator_class_type(name, text, sizeof(text));
	cr_expect_str_eq(text, "xxxxxxx");
}
