// A stand-in for the part of NVIDIA's compiler that src/device/cuda/compile.rs calls, for machines without it: machine code
// is the ELF magic and the source, and a source with the word `missing` does not compile.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, COMPILATION = 6 };
static const int ARCHITECTURES[] = {75, 80, 90};

struct program {
    char *name, *source, log[256];
};

int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, SUCCESS; }
int nvrtcGetNumSupportedArchs(int *count) { return *count = 3, SUCCESS; }
int nvrtcGetSupportedArchs(int *known) { return memcpy(known, ARCHITECTURES, sizeof ARCHITECTURES), SUCCESS; }
const char *nvrtcGetErrorString(int result) { return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS"; }

int nvrtcCreateProgram(
    void **program, const char *source, const char *name, int headers, const char *const *texts, const char *const *names
) {
    struct program *made = calloc(1, sizeof *made);
    made->name = strdup(name), made->source = strdup(source);
    return *program = made, SUCCESS;
}
int nvrtcDestroyProgram(void **program) {
    struct program *gone = *program;
    free(gone->name), free(gone->source), free(gone);
    return *program = 0, SUCCESS;
}

int nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
    const char *found = strstr(program->source, "missing");
    if (found == 0) return SUCCESS;
    int line = 1;
    for (const char *at = program->source; at < found; at++) line += *at == '\n';
    snprintf(program->log, sizeof program->log, "%s(%d): error: identifier \"missing\" is undefined\n", program->name, line);
    return COMPILATION;
}
int nvrtcGetProgramLogSize(const struct program *program, size_t *bytes) { return *bytes = strlen(program->log) + 1, SUCCESS; }
int nvrtcGetProgramLog(const struct program *program, char *log) { return strcpy(log, program->log), SUCCESS; }
int nvrtcGetCUBINSize(const struct program *program, size_t *bytes) { return *bytes = 4 + strlen(program->source), SUCCESS; }
int nvrtcGetCUBIN(const struct program *program, char *code) {
    memcpy(code, "\177ELF", 4);
    return memcpy(code + 4, program->source, strlen(program->source)), SUCCESS;
}
