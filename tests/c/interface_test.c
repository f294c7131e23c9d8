/* The C interface from C: interface_test REQUEST.json, a request that can be planned for a shipped machine.
 * Needs neither GPU nor NVRTC; each check that fails is a line, and the exit code is 1. */
#include "rooftile/rooftile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void check(int holds, const char* what, int line) {
    if (holds) return;
    ++failures;
    fprintf(stderr, "interface_test.c:%d: %s; the last error: %s\n", line, what, rooftile_error_message());
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

static void check_text(int status, char** given, const char* part, int line) {
    check(status == ROOFTILE_DONE, "the call fails", line);
    if (status != ROOFTILE_DONE) return;
    char* text = *given;
    if (!strstr(text, part)) {
        ++failures;
        fprintf(stderr, "interface_test.c:%d: no '%s' in %.200s\n", line, part, text);
    }
    rooftile_free_text(text);
}

static void refused(const char* request, int status, const char* part) {
    rooftile_plans* plans = NULL;
    const int got = rooftile_plan(request, &plans);
    if (got == status && !plans && strstr(rooftile_error_message(), part)) return;
    ++failures;
    fprintf(stderr, "interface_test.c: %s: status %d, '%s'; expected %d with '%s'\n",
            request ? request : "null", got, rooftile_error_message(), status, part);
}

static char* file_text(const char* name) {
    static char text[1 << 16];
    FILE* file = fopen(name, "rb");
    size_t bytes = 0;
    if (!file) return NULL;
    bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = 0;
    return text;
}

static void refusals(void) {
    refused(NULL, ROOFTILE_BAD_REQUEST, "null");
    refused("", ROOFTILE_BAD_REQUEST, "no JSON");
    refused("[1]", ROOFTILE_BAD_REQUEST, "no JSON object");
    refused("{\"op\": ", ROOFTILE_BAD_REQUEST, "no JSON");
    refused("{}", ROOFTILE_BAD_REQUEST, "op names the operation");
    refused("{\"op\": \"nothing\"}", ROOFTILE_BAD_REQUEST, "there is no operation nothing");
    refused("{\"op\": \"a\", \"op\": \"b\"}", ROOFTILE_BAD_REQUEST, "is there twice");
    CHECK(!strcmp(rooftile_status_name(ROOFTILE_BAD_REQUEST), "RequestError"));
    CHECK(!strcmp(rooftile_status_name(ROOFTILE_NO_PLAN), "Infeasible"));
    CHECK(!strcmp(rooftile_status_name(ROOFTILE_DONE), ""));
}

/* The same request with one more member. */
static void refused_with(const char* request, const char* member, int status, const char* part) {
    static char text[1 << 16];
    snprintf(text, sizeof text, "{%s, %s", member, strchr(request, '{') + 1);
    refused(text, status, part);
}

static void tensors(const rooftile_plans* plans) {
    int outputs = 0;
    const int count = rooftile_tensor_count(plans);
    CHECK(count >= 2);
    for (int i = 0; i < count; ++i) {
        const rooftile_tensor* tensor = rooftile_tensor_at(plans, i);
        CHECK(tensor && tensor->name[0] && tensor->type[0] && tensor->element_bits > 0 && tensor->rank > 0);
        for (int axis = 0; tensor && axis < tensor->rank; ++axis) CHECK(tensor->extents[axis] > 0);
        if (tensor) outputs += tensor->is_output;
    }
    CHECK(outputs >= 1);
    CHECK(!rooftile_tensor_at(plans, count) && !rooftile_tensor_at(plans, -1));
}

static void planned(const char* request) {
    rooftile_plans* plans = NULL;
    rooftile_kernel* kernel = NULL;
    char* text = NULL;
    CHECK(rooftile_plan(request, &plans) == ROOFTILE_DONE);
    if (!plans) return;
    CHECK(rooftile_plan_count(plans) >= 1);
    check_text(rooftile_plans_json(plans, &text), &text, "\"schema\":\"rooftile/plan/1\"", __LINE__);
    check_text(rooftile_plans_json(plans, &text), &text, "rooftile plan ", __LINE__);
    check_text(rooftile_explain(plans, 1, 0, &text), &text, "shared", __LINE__);
    check_text(rooftile_explanation(plans, 1, &text), &text, "\"attainability\":[{", __LINE__);
    CHECK(rooftile_explanation(plans, 0, &text) == ROOFTILE_BAD_REQUEST);
    check_text(rooftile_pictures(plans, 1, "waterfall", &text), &text, "<svg", __LINE__);
    CHECK(rooftile_pictures(plans, 1, "of a cat", &text) == ROOFTILE_BAD_REQUEST);
    CHECK(strstr(rooftile_error_message(), "waterfall"));
    const int sourced = rooftile_source(plans, 1, &text);  /* needs NVRTC, which may be missing here */
    if (sourced == ROOFTILE_COMPILE_FAILED) CHECK(strstr(rooftile_error_message(), "nvrtc"));
    else check_text(sourced, &text, "inline cudaError_t launch(", __LINE__);
    CHECK(rooftile_explain(plans, 0, 0, &text) == ROOFTILE_BAD_REQUEST);
    CHECK(strstr(rooftile_error_message(), "there is no plan 0"));
    CHECK(rooftile_compile(plans, 1000, &kernel) == ROOFTILE_BAD_REQUEST && !kernel);
    tensors(plans);
    rooftile_free_plans(plans);

    refused_with(request, "\"nothing_like_this\": 1", ROOFTILE_BAD_REQUEST, "has no field nothing_like_this");
    refused_with(request, "\"machin\": \"h200-sxm\"", ROOFTILE_BAD_REQUEST, "did you mean machine?");
    refused_with(request, "\"exhaustive\": 1", ROOFTILE_BAD_REQUEST,
                 "exhaustive is 1; accepted is true or false");
    refused_with(request, "\"top\": {}", ROOFTILE_BAD_REQUEST, "top is {}; accepted is N");
    refused_with(request, "\"top\": 0", ROOFTILE_BAD_REQUEST, "top");
}

/* A request in which one number is a range. */
static void ranged(const char* request) {
    char* text = NULL;
    check_text(rooftile_plan_range(request, NULL, 0, &text), &text, "\"schema\":\"rooftile/range/1\"", __LINE__);
    CHECK(rooftile_plan_range(NULL, NULL, 0, &text) == ROOFTILE_BAD_REQUEST);
    CHECK(rooftile_plan_range("{\"op\": \"", NULL, 0, &text) == ROOFTILE_BAD_REQUEST);
    refused(request, ROOFTILE_BAD_REQUEST, "");
}

static void refused_source(const char* request, const char* part) {
    rooftile_module* module = NULL;
    const int got = rooftile_load_source(request, &module);
    if (got == ROOFTILE_BAD_REQUEST && !module && strstr(rooftile_error_message(), part)) return;
    ++failures;
    fprintf(stderr, "interface_test.c: %s: status %d, '%s'; expected '%s'\n", request, got, rooftile_error_message(), part);
}

/* Kernels of one's own, as far as that goes without a compiler. */
static void sources(void) {
    refused_source("[]", "no JSON object");
    refused_source("{", "no JSON object");
    refused_source("{}", "file or text says what to compile");
    refused_source("{\"file\": \"a.cu\", \"text\": \"b\"}", "one of them");
    refused_source("{\"file\": \"/nowhere/a.cu\"}", "/nowhere/a.cu");
    refused_source("{\"files\": \"a.cu\"}", "the request has no field files; there are file, text");
    refused_source("{\"text\": \"int a;\"}", "no __global__ function");
    refused_source("{\"text\": \"a\", \"functions\": \"a\"}", "functions is \"a\"; accepted is a list of texts");
    refused_source("{\"text\": \"a\", \"functions\": [1]}", "accepted is a list of texts");
    refused_source("{\"text\": \"a\", \"functions\": [\"a\"], \"arch\": 90}", "arch is 90; accepted is a text");
    refused_source("{\"text\": \"a\", \"functions\": [\"a\"], \"arch\": \"sm_90\", \"machine\": \"h100-sxm\"}", "give one");
    CHECK(rooftile_module_function_count(NULL) == 0 && rooftile_module_parameter_count(NULL, 0) == 0);
    CHECK(!rooftile_module_parameter_at(NULL, 0, 0));
}

int main(int count, char** arguments) {
    char* text = NULL;
    const char* request = count >= 2 ? file_text(arguments[1]) : NULL;
    if (!request) {
        fprintf(stderr, "usage: interface_test REQUEST.json [RANGE.json]\n");
        return 2;
    }
    CHECK(strchr(rooftile_version(), '.'));
    check_text(rooftile_operations(&text), &text, "\"fields\"", __LINE__);
    check_text(rooftile_machines(&text), &text, "\"h100-sxm\"", __LINE__);
    check_text(rooftile_machine("h100-sxm", &text), &text, "dram.bandwidth", __LINE__);
    CHECK(rooftile_machine("h100-sx", &text) == ROOFTILE_BAD_REQUEST);
    CHECK(strstr(rooftile_error_message(), "h100-sxm"));
    refusals();
    sources();
    planned(request);
    CHECK(rooftile_plan_range(request, NULL, 0, &text) == ROOFTILE_BAD_REQUEST);
    CHECK(strstr(rooftile_error_message(), "none of the fields is a range"));
    if (count > 2) ranged(file_text(arguments[2]));  /* its text lies where the request's did */
    if (failures == 0) printf("%s: all checks hold\n", arguments[1]);
    return failures != 0;
}
