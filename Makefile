# SPDX-License-Identifier: BSD-2-Clause
# `make help` lists the targets. Everything that is made lies under build/ (build/arm64/ for the cross-build).

VERSION = 0.1.0
SOVERSION = 0

## variables
## prefix=DIR          where `make install` puts things (/usr/local)
## DESTDIR=DIR         put in front of every installed path, for packages
## CFLAGS=FLAGS        optimisation and debugging flags (-O2 -g)
## WERROR=1            compiler warnings are errors
## V=1                 print the commands
## FUZZ_SECONDS=N      how long each fuzz target runs (60)
## SECONDS=N           how long `make fuzz-long` runs (7200)
## UNIT_OPTIONS=...    options of the unit tests, such as "--filter 'model_*/*'"
## E2E_OPTIONS=...     options of tests/e2e/run.py, such as "-j 1 -k onnx"
## FAULTS_OPTIONS=...  options of tests/e2e/faults.py, such as "-k report --kind short"
## VM_OPTIONS=...      options of tests/vm/run.py, such as "--kernel 6.1 -k standins"
## PACKAGES_OPTIONS=...  options of tests/packages/run.py, such as "-k debian"
## BENCH_OPTIONS=...   options of tests/bench/run.py
## SECONDS=N           how long make soak runs (7200)
prefix = /usr/local
bindir = $(prefix)/bin
libdir = $(prefix)/lib
includedir = $(prefix)/include
datadir = $(prefix)/share
mandir = $(datadir)/man
docdir = $(datadir)/doc/xputrace
nodedir = $(datadir)/xputrace/node
# Where $(PYTHON) looks for packages below prefix; where it looks nowhere there, PYTHONPATH has to name it.
pythondir = $(call memo,pythondir,$(PYTHON) -c "import site; \
	found = [p for p in site.getsitepackages() if p.startswith('$(prefix)/') and ('$(prefix)' != '/usr' or 'local' not in p)]; \
	print(found[0] if found else '$(datadir)/xputrace/python')")
unitdir = $(prefix)/lib/systemd/system
DESTDIR =
CFLAGS ?= -O2 -g
# What is built, for --version, and the time that generated texts have instead of now: in what `git archive` has made
# user/packaging/commit has both. Each may be set instead.
ARCHIVED := $(shell sed -n 's/^\([0-9a-f]\{12\}\)[0-9a-f]*\(-dirty\)\? \([0-9]*\)$$/\1\2 \3/p' user/packaging/commit 2>/dev/null)
GIT := $(if $(ARCHIVED),,$(if $(wildcard .git),git))
COMMIT := $(or $(firstword $(ARCHIVED)),$(if $(GIT),$(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)))
ifndef SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH := $(or $(word 2,$(ARCHIVED)),$(if $(GIT),$(shell git log -1 --format=%ct 2>/dev/null)))
endif
ifneq ($(SOURCE_DATE_EPOCH),)
export SOURCE_DATE_EPOCH
endif
FUZZ_SECONDS = 60
SECONDS = 7200
UNIT_OPTIONS =
E2E_OPTIONS =
FAULTS_OPTIONS =
VM_OPTIONS =
PACKAGES_OPTIONS =
BENCH_OPTIONS =

# ---- machine, tools and flags ----

HOST_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m)))
ARCH = $(HOST_ARCH)
TRIPLET := $(if $(filter arm64,$(ARCH)),aarch64-linux-gnu,x86_64-linux-gnu)
ifeq ($(wildcard vmlinux/$(ARCH)/vmlinux.h),)
$(error unsupported architecture '$(ARCH)': there is no vmlinux/$(ARCH)/vmlinux.h)
endif

ifeq ($(ARCH),$(HOST_ARCH))
BUILD := build
CROSS :=
PKG_CONFIG ?= pkg-config
else
BUILD := build/$(ARCH)
CROSS := $(TRIPLET)-
PKG_CONFIG := PKG_CONFIG_LIBDIR=/usr/lib/$(TRIPLET)/pkgconfig:/usr/share/pkgconfig pkg-config
endif

ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
ifeq ($(origin AR),default)
AR := $(CROSS)ar
endif
LD := $(CROSS)ld
OBJCOPY := $(CROSS)objcopy
CLANG ?= clang
PYTHON ?= python3
INSTALL ?= install
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

# Evaluated at first use, so that `make deps` and `make help` work before anything is installed.
memo = $(eval $(1) := $(shell $(2)))$($(1))
# A distribution's bpftool may be a wrapper that only works with a matching kernel: take one that answers.
BPFTOOL = $(call memo,BPFTOOL,for tool in bpftool /usr/sbin/bpftool /usr/lib/linux-tools/*/bpftool \
	/usr/lib/linux-tools-*/bpftool; do $$tool version >/dev/null 2>&1 && echo $$tool && break; done)
PACKAGES := libbpf libdw libelf libcjson libpcre2-8 libtraceevent libcrypto zlib sqlite3
PACKAGE_CFLAGS = $(call memo,PACKAGE_CFLAGS,$(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
PACKAGE_LIBS = $(call memo,PACKAGE_LIBS,$(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)
# Of the command alone.
CLI_LIBS = $(call memo,CLI_LIBS,$(PKG_CONFIG) --libs ncursesw libmicrohttpd libcurl 2>/dev/null)
LIBS = $(PACKAGE_LIBS) -lZydis -liberty -lm -lpthread
UNIT_LIBS = -lcriterion

WARNINGS := -Wall -Wextra $(if $(WERROR),-Werror)
INCLUDES := -I. -Iuser -Iinclude
# Two builds in different folders are the same.
ANYWHERE := -ffile-prefix-map=$(CURDIR)=.
# -fPIC: the same objects make the static and the shared library.
BASE_FLAGS = -std=gnu11 -D_GNU_SOURCE -DXPT_VERSION='"$(VERSION)"' $(INCLUDES) $(WARNINGS) $(PACKAGE_CFLAGS) \
	-fPIC -fvisibility=hidden -MMD -MP $(ANYWHERE)
# In front of the user's flags, which may switch each off. The C library refuses _FORTIFY_SOURCE without optimisation.
BRANCHES_x86 := -fcf-protection
BRANCHES_arm64 := -mbranch-protection=standard
comma := ,
# Structs of 100 to 1,000 bytes are cleared for each record: gcc's "rep stos" takes longer than the C library.
CLEARING_x86 := $(if $(findstring clang,$(CC)),,-mmemset-strategy=unrolled_loop:64:noalign$(comma)libcall:-1:noalign)
OPTIMISED = $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
FORTIFY = $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,$(if $(OPTIMISED),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENING = -fstack-protector-strong $(BRANCHES_$(ARCH)) $(FORTIFY)
COMPILE = $(CC) $(BASE_FLAGS) $(HARDENING) $(CLEARING_$(ARCH)) $(CPPFLAGS) $(CFLAGS) $(UNOPTIMISED)
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
# Sanitizers hide from gcc what is initialised.
SANITIZED_COMPILE = $(CC) $(BASE_FLAGS) $(CPPFLAGS) $(SANITIZE) -Wno-maybe-uninitialized $(UNOPTIMISED)
FUZZ_COMPILE = $(CLANG) $(BASE_FLAGS) $(CPPFLAGS) $(SANITIZE)
COVERAGE_COMPILE = $(CLANG) $(BASE_FLAGS) $(CPPFLAGS) -O1 -g -fprofile-instr-generate -fcoverage-mapping
# v3: atomic operations that return a value need it.
# A larger frame would lie on a stack that tasks share (bpf/thread.bpf.h). Other tasks do not run during tracepoints.
BPF_FRAME = -Wframe-larger-than=48 -Werror=frame-larger-than=
BPF_COMPILE = $(CLANG) -target bpf -mcpu=v3 -O2 -g -Wall $(if $(WERROR),-Werror) $(BPF_FRAME) -D__TARGET_ARCH_$(ARCH) \
	-Ivmlinux/$(ARCH) -I. -MMD -MP $(ANYWHERE)
$(BUILD)/bpf/part/tasks.bpf.o $(BUILD)/bpf/part/drivers.bpf.o: BPF_FRAME =

# ---- sources ----

FOLDERS := base code describe target stack kern model record counter report profile analysis page control session
# Folders have one or two levels.
LIBRARY_SOURCES := $(sort $(wildcard $(FOLDERS:%=user/%/*.c) $(FOLDERS:%=user/%/*/*.c) user/*.c))
CLI_SOURCES := $(sort $(wildcard user/cli/*.c user/cli/*/*.c))
# Objects of their own: what not every kernel takes, or not every recording needs.
BPF_APART := session session_context drivers code switches samples
BPF_SOURCES := $(sort $(filter-out $(BPF_APART:%=bpf/%.bpf.c),$(wildcard bpf/*.bpf.c)))
RUNTIMES := $(sort $(wildcard user/runtimes/*.json))
DRIVERS := $(sort $(wildcard user/drivers/*.json))
# In their order in the page.
PAGE_SCRIPTS := $(patsubst %,user/page/%.js,base draw data overview programs tracks compare operators flame machine comparison main)
UNIT_SOURCES := $(sort $(wildcard tests/unit/*.c))
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SOURCES := $(sort $(wildcard tests/bench/*.c))
WORKLOAD_SOURCES := $(sort $(wildcard tests/workload/*.* tests/workload/*/*.*))
NPM_ALL := $(notdir $(patsubst %/package.json,%,$(wildcard tests/workload/*/npm*/package.json)))
# Half a GiB: for test-engines alone.
NPM_RELEASES := $(filter-out npm-clickhouse,$(NPM_ALL))
HEADERS := $(sort $(wildcard include/xputrace/*.h))
MANUALS := $(sort $(wildcard user/cli/man/*.1))
UNITS := $(notdir $(basename $(wildcard user/packaging/*.service.in)))
LIBRARY_MANUALS := $(sort $(wildcard user/cli/man/*.3))

SKELETONS := $(BUILD)/xputrace.skel.h $(BPF_APART:%=$(BUILD)/%.skel.h)
LIBRARY_OBJECTS := $(LIBRARY_SOURCES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/builtin.o $(BUILD)/obj/page.o
CLI_OBJECTS := $(CLI_SOURCES:%.c=$(BUILD)/obj/%.o)
BASE_OBJECTS := $(filter $(BUILD)/obj/user/base/%,$(LIBRARY_OBJECTS))
UNIT_OBJECTS := $(UNIT_SOURCES:%.c=$(BUILD)/obj/%.o)
SANITIZED_LIBRARY := $(LIBRARY_SOURCES:%.c=$(BUILD)/sanitize/%.o) $(BUILD)/sanitize/builtin.o $(BUILD)/sanitize/page.o
SANITIZED_OBJECTS := $(SANITIZED_LIBRARY) $(UNIT_SOURCES:%.c=$(BUILD)/sanitize/%.o)
FUZZ_OBJECTS := $(LIBRARY_SOURCES:%.c=$(BUILD)/fuzz/obj/%.o) $(BUILD)/fuzz/obj/builtin.o $(BUILD)/fuzz/obj/page.o
COVERAGE_OBJECTS := $(FUZZ_OBJECTS:$(BUILD)/fuzz/%=$(BUILD)/coverage/%)
# Optimising unit tests takes five times as long as compiling them, and they run no faster.
$(UNIT_OBJECTS) $(UNIT_SOURCES:%.c=$(BUILD)/sanitize/%.o): UNOPTIMISED = -U_FORTIFY_SOURCE -O0
FUZZ_TARGETS := $(FUZZ_SOURCES:tests/fuzz/fuzz_%.c=%)
BENCH_PROGRAMS := $(BENCH_SOURCES:tests/bench/%.c=$(BUILD)/bench/%)
# What the benchmarks trace: programs of their own, with nothing of xputrace inside.
BENCH_TARGET_SOURCES := $(sort $(wildcard tests/bench/target/*.c))
BENCH_TARGETS := $(BENCH_TARGET_SOURCES:tests/bench/target/%.c=$(BUILD)/bench/%)
SHARED_NAME := libxputrace.so.$(SOVERSION)
# Regions for Node.js, where its headers are.
NODE_HEADERS ?= $(if $(CROSS),,$(firstword $(wildcard /usr/include/node/node_api.h /usr/local/include/node/node_api.h)))
NODE_ADDON := $(if $(NODE_HEADERS),$(BUILD)/node/xputrace.node)

.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: all help deps deps-arm64 arm64 test test-unit test-sanitize test-fuzz test-e2e test-symbols test-public test-packages test-engines test-truth test-faults test-vm test-vm-all test-bench test-lint fuzz lint format fuzz-long fuzz-coverage fuzz-compare test-vm-matrix \
	bench soak demo npm npm-releases python victoria-metrics workload dist deb rpm tarball install uninstall clean FORCE

## targets
## all                 build the command and the libraries (the default)
all: $(BUILD)/xputrace $(BUILD)/libxputrace.a $(BUILD)/$(SHARED_NAME) $(BUILD)/xputrace.pc $(UNITS:%=$(BUILD)/%) $(NODE_ADDON)

# ---- what a rebuild depends on beside the files ----

# Rewritten only when its text changes: flags that change rebuild the objects, a file that comes or goes relinks.
define stamp
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' >$@
endef

$(BUILD)/flags: FORCE | $(BUILD)/tools
	$(call stamp,$(COMPILE) $(BPF_COMPILE) $(FUZZ_COMPILE) $(LIBS))

$(BUILD)/sources: FORCE
	$(call stamp,$(LIBRARY_SOURCES) $(CLI_SOURCES) $(UNIT_SOURCES) $(BPF_SOURCES) $(RUNTIMES) $(DRIVERS))

$(BUILD)/commit: FORCE
	$(call stamp,$(COMMIT))

$(BUILD)/obj/user/cli/main.o: $(BUILD)/commit
$(BUILD)/obj/user/cli/main.o: private BASE_FLAGS += $(if $(COMMIT),-DXPT_COMMIT='" ($(COMMIT))"')

$(BUILD)/tools: Makefile
	$(Q)mkdir -p $(@D)
	$(Q)for tool in $(firstword $(CC)) $(CLANG) $(OBJCOPY); do \
		command -v $$tool >/dev/null || { echo "$$tool is missing: make deps installs it" >&2; exit 1; }; done
	$(Q)$(PKG_CONFIG) --print-errors --exists 'libbpf >= 1.1' 'libdw >= 0.188' libelf libcjson libtraceevent libmicrohttpd libcurl libcrypto zlib sqlite3 || \
		{ echo "a library is missing: make deps$(if $(CROSS),-$(ARCH)) installs it" >&2; exit 1; }
	$(Q)test -n '$(BPFTOOL)' || { echo "bpftool is missing: make deps installs it" >&2; exit 1; }
	$(Q)touch $@

# ---- BPF objects and their skeletons ----

$(BUILD)/bpf/part/%.bpf.o: bpf/%.bpf.c $(BUILD)/flags
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPF_COMPILE) -c $< -o $@

# The two flavours of the session programs: helpers without and with the context as argument.
$(BUILD)/bpf/part/session_context.bpf.o: bpf/session.bpf.c $(BUILD)/flags
	$(call say,BPF,$< (context))
	$(Q)mkdir -p $(@D)
	$(Q)$(BPF_COMPILE) -DXPT_SESSION_CONTEXT -c $< -o $@

# Linking also drops the DWARF that the compiler needed to write BTF.
$(BUILD)/bpf/xputrace.bpf.o: $(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/bpf/part/%.bpf.o) $(BUILD)/sources
	$(call say,BPFLD,$@)
	$(Q)$(BPFTOOL) gen object $@ $(filter %.o,$^)

$(BPF_APART:%=$(BUILD)/bpf/%.bpf.o): $(BUILD)/bpf/%.bpf.o: $(BUILD)/bpf/part/%.bpf.o
	$(call say,BPFLD,$@)
	$(Q)$(BPFTOOL) gen object $@ $<

$(SKELETONS): $(BUILD)/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)echo '/* NOLINTBEGIN: generated */' >$@
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf >>$@
	$(Q)echo '/* NOLINTEND */' >>$@

# ---- objects ----

$(BUILD)/obj/user/kern/%.o $(BUILD)/sanitize/user/kern/%.o $(BUILD)/fuzz/obj/user/kern/%.o \
	$(BUILD)/coverage/obj/user/kern/%.o: INCLUDES += -I$(BUILD)
# Only for the first build: later the dependency files know who includes a skeleton.
$(filter $(BUILD)/obj/user/kern/% $(BUILD)/sanitize/user/kern/% $(BUILD)/fuzz/obj/user/kern/% $(BUILD)/coverage/obj/user/kern/%,\
	$(LIBRARY_OBJECTS) $(SANITIZED_OBJECTS) $(FUZZ_OBJECTS) $(COVERAGE_OBJECTS)): | $(SKELETONS)

$(BUILD)/builtin.c: user/describe/embed.sh $(RUNTIMES) $(DRIVERS) $(BUILD)/sources
	$(call say,EMBED,$@)
	$(Q)sh user/describe/embed.sh $(RUNTIMES) --drivers $(DRIVERS) >$@

$(BUILD)/page.c: user/page/embed.sh user/page/page.css $(PAGE_SCRIPTS)
	$(call say,EMBED,$@)
	$(Q)sh user/page/embed.sh user/page/page.css $(PAGE_SCRIPTS) >$@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -c $< -o $@

$(BUILD)/obj/builtin.o $(BUILD)/obj/page.o: $(BUILD)/obj/%.o: $(BUILD)/%.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -c $< -o $@

$(BUILD)/sanitize/%.o: %.c $(BUILD)/flags
	$(call say,CCSAN,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(SANITIZED_COMPILE) -c $< -o $@

$(BUILD)/sanitize/builtin.o $(BUILD)/sanitize/page.o: $(BUILD)/sanitize/%.o: $(BUILD)/%.c $(BUILD)/flags
	$(call say,CCSAN,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(SANITIZED_COMPILE) -c $< -o $@

$(BUILD)/fuzz/obj/%.o: %.c $(BUILD)/flags
	$(call say,CCFUZZ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_COMPILE) -fsanitize=fuzzer-no-link -c $< -o $@

$(BUILD)/fuzz/obj/builtin.o $(BUILD)/fuzz/obj/page.o: $(BUILD)/fuzz/obj/%.o: $(BUILD)/%.c $(BUILD)/flags
	$(call say,CCFUZZ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_COMPILE) -fsanitize=fuzzer-no-link -c $< -o $@

$(BUILD)/coverage/obj/%.o: %.c $(BUILD)/flags
	$(call say,CCCOV,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(COVERAGE_COMPILE) -c $< -o $@

$(BUILD)/coverage/obj/builtin.o $(BUILD)/coverage/obj/page.o: $(BUILD)/coverage/obj/%.o: $(BUILD)/%.c $(BUILD)/flags
	$(call say,CCCOV,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(COVERAGE_COMPILE) -c $< -o $@

# ---- libraries and the command ----

# One relocatable object whose hidden symbols are local: a program that links the archive sees xpt_* only. Section groups
# end here: the linker would drop one for the program's own of the same name, with symbols that nobody else can reach.
$(BUILD)/libxputrace.a: $(LIBRARY_OBJECTS) $(BUILD)/sources
	$(call say,AR,$@)
	$(Q)$(LD) -r --force-group-allocation -o $(BUILD)/libxputrace.o $(filter %.o,$^)
	$(Q)$(OBJCOPY) --localize-hidden $(BUILD)/libxputrace.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(BUILD)/libxputrace.o

$(BUILD)/$(SHARED_NAME): $(LIBRARY_OBJECTS) user/libxputrace.map $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SHARED_NAME) -Wl,--version-script=user/libxputrace.map \
		-Wl,--no-undefined -Wl,-z,relro,-z,now -o $@ $(filter %.o,$^) $(LIBS)
	$(Q)ln -sf $(SHARED_NAME) $(BUILD)/libxputrace.so

# The command brings its own copy of base/: the library's is not visible to it.
$(BUILD)/xputrace: $(CLI_OBJECTS) $(BASE_OBJECTS) $(BUILD)/libxputrace.a $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pie -Wl,-z,relro,-z,now -o $@ $(filter %.o,$^) $(BUILD)/libxputrace.a $(LIBS) $(CLI_LIBS)

$(BUILD)/node/xputrace.node: node/addon.c node/index.mjs node/package.json include/xputrace/region.h $(BUILD)/flags
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)cp node/index.mjs node/package.json $(@D)
	$(Q)$(COMPILE) -I$(dir $(NODE_HEADERS)).. $(LDFLAGS) -shared -o $@ $<

$(BUILD)/xputrace.pc: user/xputrace.pc.in FORCE
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' \
		-e 's|@version@|$(VERSION)|' -e 's|@packages@|$(PACKAGES)|' $< >$@

$(UNITS:%=$(BUILD)/%): $(BUILD)/%: user/packaging/%.in FORCE
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@bindir@|$(bindir)|' $< >$@

# ---- tests ----

$(BUILD)/test-unit: $(UNIT_OBJECTS) $(LIBRARY_OBJECTS) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(UNIT_LIBS)

# -no-pie: each test is a process of its own, for which hundreds of thousands of addresses would be relocated.
$(BUILD)/test-sanitize: $(SANITIZED_OBJECTS) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANITIZE) -no-pie $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(UNIT_LIBS)

# Prints what is read from a file, to be compared with what other readers say.
$(BUILD)/test-code-read: $(BUILD)/obj/tests/e2e/code_read.o $(filter $(BUILD)/obj/user/code/%,$(LIBRARY_OBJECTS)) \
		$(BASE_OBJECTS) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# The same of ELF files, their code and names of types, with sanitizers: the files may be damaged.
$(BUILD)/test-elf-read: $(BUILD)/sanitize/tests/fuzz/elf_read.o $(filter $(BUILD)/sanitize/user/target/elf/% $(BUILD)/sanitize/user/base/% \
		$(addprefix $(BUILD)/sanitize/user/target/,probe/arm64.o probe/site.o probe/table.o probe/x86.o process/process.o),\
		$(SANITIZED_LIBRARY)) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANITIZE) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# What unit tests load in place of libraries that the machine need not have; they look for it beside themselves.
$(BUILD)/standin/nvml.so $(BUILD)/standin/nvml_without_clock.so: tests/unit/standin/nvml.c tests/unit/standin/nvml.h \
		$(BUILD)/flags
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) $(LDFLAGS) -shared $(if $(filter %/nvml.so,$@),,-DSTANDIN_WITHOUT_CLOCK) -o $@ $<

$(BUILD)/test-unit $(BUILD)/test-sanitize: | $(BUILD)/standin/nvml.so $(BUILD)/standin/nvml_without_clock.so

$(FUZZ_TARGETS:%=$(BUILD)/fuzz/%): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/fuzz_%.o $(FUZZ_OBJECTS) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CLANG) $(SANITIZE) $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(LIBS)

# The same without libFuzzer, of the objects of the sanitized unit tests.
$(FUZZ_TARGETS:%=$(BUILD)/replay/%): $(BUILD)/replay/%: $(BUILD)/sanitize/tests/fuzz/fuzz_%.o $(BUILD)/sanitize/tests/fuzz/replay.o \
		$(SANITIZED_LIBRARY) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SANITIZE) -no-pie $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# The same without sanitizers, to count the lines that are reached.
$(FUZZ_TARGETS:%=$(BUILD)/coverage/%): $(BUILD)/coverage/%: $(BUILD)/coverage/obj/tests/fuzz/fuzz_%.o $(COVERAGE_OBJECTS) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)$(CLANG) $(LDFLAGS) -fprofile-instr-generate -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(LIBS)

$(BENCH_PROGRAMS): $(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(LIBRARY_OBJECTS) $(BUILD)/sources
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# A probe costs more at the instruction that marks the targets of branches.
$(BUILD)/obj/tests/bench/target/%.o: HARDENING =

$(BENCH_TARGETS): $(BUILD)/bench/%: $(BUILD)/obj/tests/bench/target/%.o
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< -lpthread

## workload            build the programs that the tests trace
workload: $(BUILD)/workload.done

$(BUILD)/workload.done: $(WORKLOAD_SOURCES) Makefile
	$(call say,BUILD,$(BUILD)/workload)
	$(Q)$(if $(CROSS),CC=$(CC) CXX=$(CROSS)g++) tests/workload/build.sh $(BUILD)/workload
	$(Q)touch $@

## npm                 fetch ONNX Runtime for Node.js, without running its install scripts
npm: $(BUILD)/npm.done
## npm-releases        the same of earlier releases too, llama.cpp and readers of what is written, each in a folder of its own
npm-releases: $(NPM_RELEASES:%=$(BUILD)/%.done)

# Most of a package is for other systems.
.SECONDEXPANSION:
$(NPM_ALL:%=$(BUILD)/%.done): $(BUILD)/%.done: $$(wildcard tests/workload/*/%/package.json)
	$(call say,NPM,$(BUILD)/$*)
	$(Q)mkdir -p $(BUILD)/$*
	$(Q)cp $< $(BUILD)/$*/package.json
	$(Q)cd $(BUILD)/$* && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error
	$(Q)rm -rf $(BUILD)/$*/node_modules/onnxruntime-node/bin/*/win32 \
		$(BUILD)/$*/node_modules/onnxruntime-node/bin/*/darwin
	$(Q)test $* != npm-perfetto || find $(BUILD)/$*/node_modules ! -type d ! -path '*/assets/trace-processor/*' -delete
	$(Q)touch $@

## python              fetch Debian's next release with ONNX Runtime and PyTorch for Python, into a folder of its own
python: $(BUILD)/python.done

$(BUILD)/python.done: tests/workload/python/root.py
	$(call say,APT,$(BUILD)/python)
	$(Q)rm -rf $(BUILD)/python
	$(Q)$(PYTHON) $< $(BUILD)/python python3-onnxruntime python3-torch
	$(Q)touch $@

## victoria-metrics    fetch VictoriaMetrics of Debian's next release, which receives OTLP, into a folder of its own
victoria-metrics: $(BUILD)/victoria-metrics.done

$(BUILD)/victoria-metrics.done: tests/workload/python/root.py
	$(call say,APT,$(BUILD)/victoria-metrics)
	$(Q)rm -rf $(BUILD)/victoria-metrics
	$(Q)$(PYTHON) $< $(BUILD)/victoria-metrics victoria-metrics
	$(Q)touch $@

# What is left out of the tests of one commit is made of those of another.
test test-vm: export XPUTRACE_E2E_SEED ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo 0)

## test                install what is missing, build, run every kind of test; as root, to include the ones that trace
test:
	$(Q)tests/deps.sh test
	$(Q)MAKE='$(MAKE)' tests/all.sh

## test-unit           unit tests
test-unit: $(BUILD)/test-unit
	$(Q)tests/unit/run.sh $< $(UNIT_OPTIONS)

## test-sanitize       unit tests under the address and undefined behaviour sanitizers
test-sanitize: $(BUILD)/test-sanitize
	$(Q)tests/unit/run.sh $< $(UNIT_OPTIONS)

## test-fuzz           run the fuzz targets over their corpus only; a part of fuzz-compare
test-fuzz: $(FUZZ_TARGETS:%=$(BUILD)/replay/%) $(BUILD)/test-elf-read
	$(Q)$(PYTHON) tests/fuzz/run.py replay $(BUILD)/replay $(FUZZ_TARGETS)
	$(Q)$(PYTHON) tests/fuzz/compare.py $(BUILD)/test-elf-read 40 0 20
	$(Q)$(PYTHON) tests/fuzz/arm64.py $(BUILD)/test-elf-read 500000

## test-bench          build the benchmarks; nothing is timed
test-bench: $(BENCH_PROGRAMS) $(BENCH_TARGETS)

## test-e2e            trace real programs and compare; as root
test-e2e: all workload $(BUILD)/test-code-read $(BUILD)/bench/loop
	-$(Q)$(MAKE) --no-print-directory --keep-going npm-releases python victoria-metrics
	$(PYTHON) tests/e2e/run.py $(E2E_OPTIONS)

## test-engines        the statements of docs/questions.md for many files in ClickHouse and DuckDB, which are fetched (600 MB); as root
test-engines: all workload $(BUILD)/npm-clickhouse.done $(BUILD)/npm-duckdb.done
	$(PYTHON) tests/e2e/run.py -k 'sql_engines.*'

## test-truth          2,000 random workloads with random options, every figure of every output checked, and 200 random sequences of
##                     attach, fork, exec, dlopen, save, kill; XPUTRACE_TRUTH=FROM-TO, XPUTRACE_MACHINE=FROM-TO: others
# Probes of more than three at once come late: the kernel places one at a time.
test-truth: all workload
	XPUTRACE_TRUTH=$${XPUTRACE_TRUTH:-200-2199} $(PYTHON) tests/e2e/run.py -j 3 -k 'truth.*'
	XPUTRACE_MACHINE=$${XPUTRACE_MACHINE:-4-203} $(PYTHON) tests/e2e/run.py -k 'machine.*'

## test-faults         each system call and write of each command fails once, and each chain of callers that allocates, hours; as root,
##                     with no other collector; FAULTS_OPTIONS="-k record --kind call --seconds 600"
test-faults: all workload
	$(PYTHON) tests/e2e/faults.py $(FAULTS_OPTIONS)

## test-vm             the tests that depend on the kernel, on Debian's 6.1, 6.12 and its newest, those of the architecture
##                     on AArch64, too; in QEMU without KVM
## test-vm-matrix      a few of them on x86-64 with 1 to 8 CPUs, each way to preempt, cgroup v1, lockdown, AppArmor, SELinux; an hour
## test-vm-all         all tests, on AArch64 unit tests, too, and those of test-vm-matrix; takes hours for each kernel
test-vm-matrix: override VM_OPTIONS += --matrix
test-vm-all: override VM_OPTIONS += --all --matrix
test-vm test-vm-matrix test-vm-all:
	$(Q)tests/deps.sh vm
	$(Q)tests/deps.sh arm64
	$(Q)$(MAKE) --no-print-directory all workload build/bench/loop build/test-code-read
	$(Q)$(MAKE) --no-print-directory ARCH=arm64 all workload build/arm64/bench/loop build/arm64/test-code-read
	$(PYTHON) tests/vm/run.py $(VM_OPTIONS)

## test-public         programs that use the installed library, and docs/examples; root, to trace
test-public: all workload
	$(Q)MAKE='$(MAKE)' tests/public/run.sh $(BUILD)

## test-packages       make all packages; use, upgrade and remove them in fresh systems; root, several minutes
test-packages:
	$(Q)tests/deps.sh packages
	$(Q)MAKE='$(MAKE)' $(PYTHON) -B tests/packages/run.py $(PACKAGES_OPTIONS)

## test-symbols        described functions against the distribution's own libraries
test-symbols: $(BUILD)/xputrace
	$(Q)$(PYTHON) tests/e2e/debian_symbols.py

## test-lint           who includes whom, words, licence lines, documents, manual pages against --help
test-lint: $(BUILD)/xputrace
	$(Q)$(PYTHON) tests/lint/layers.py
	$(Q)tests/lint/words.sh
	$(Q)$(PYTHON) tests/lint/documents.py
	$(Q)$(PYTHON) tests/lint/selftest.py
	$(Q)$(PYTHON) tests/lint/options.py $(BUILD)/xputrace

## fuzz                run every fuzz target for FUZZ_SECONDS
fuzz: $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)
	$(Q)$(PYTHON) tests/fuzz/run.py each $(FUZZ_SECONDS) $(BUILD)/fuzz $(FUZZ_TARGETS)

## fuzz-long           all fuzz targets in SECONDS together, two hours; ends with a table
fuzz-long: $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)
	$(Q)$(PYTHON) tests/fuzz/run.py total $(SECONDS) $(BUILD)/fuzz $(FUZZ_TARGETS)

## fuzz-coverage       lines of each parser that the corpus of its fuzz target reaches; below 60 % of them it fails
fuzz-coverage: $(FUZZ_TARGETS:%=$(BUILD)/coverage/%)
	$(Q)$(PYTHON) tests/fuzz/run.py coverage $(BUILD)/coverage $(FUZZ_TARGETS)

## fuzz-compare        ELF files of this machine, and 20,000 damaged ones, against readelf; names of types against c++filt; code of AArch64
##                     in the libraries of make npm-releases against objdump
fuzz-compare: $(BUILD)/test-elf-read
	$(PYTHON) tests/fuzz/compare.py $< 20000
	$(PYTHON) tests/fuzz/arm64.py $<

## lint                formatting, static analysis, shell scripts, manual pages
lint:
	$(Q)tests/deps.sh lint
	$(Q)$(MAKE) --no-print-directory $(SKELETONS)
	$(Q)tests/lint/run.sh $(INCLUDES) -isystem $(BUILD) -std=gnu11 -D_GNU_SOURCE -DXPT_VERSION='"$(VERSION)"' \
		$$($(PKG_CONFIG) --cflags $(PACKAGES))

## format              lay the sources out as lint wants them
format:
	$(Q)find user include bpf docs node tests -name '*.[ch]' -exec clang-format-14 --style=file -i {} +

## bench               overhead, throughput, attach time, beside perf and bpftrace; as root
bench:
	$(Q)tests/deps.sh bench
	$(Q)$(MAKE) --no-print-directory all workload $(BENCH_PROGRAMS) $(BENCH_TARGETS)
	-$(Q)$(MAKE) --no-print-directory npm
	$(PYTHON) tests/bench/run.py $(BENCH_OPTIONS)

SECONDS = 7200

## soak                everything at once for SECONDS, two hours, as root: fails with what grows or is counted wrongly
soak: all workload
	$(PYTHON) tests/soak/soak.py --seconds $(SECONDS) $(SOAK_OPTIONS)

## demo                trace a model that runs in ONNX Runtime; as root, installs what is missing
demo:
	$(Q)MAKE='$(MAKE)' tests/demo/run.sh

# ---- machines ----

## deps                install what building and testing need (Debian, Ubuntu), or name it
deps:
	$(Q)tests/deps.sh test

## deps-arm64          the same for the cross-build; adds the arm64 architecture to dpkg
deps-arm64:
	$(Q)tests/deps.sh arm64

## arm64               cross-build everything for AArch64 into build/arm64/
arm64: deps-arm64
	$(Q)$(MAKE) --no-print-directory ARCH=arm64 all

# ---- packages ----

DIST := $(BUILD)/xputrace-$(VERSION).tar.gz

## dist                the source as build/xputrace-VERSION.tar.gz
dist: $(DIST)

# What is made of it is made again when it has changed.
$(DIST): FORCE
	$(Q)user/packaging/dist.sh '$(VERSION)' '$(COMMIT)' '$(or $(SOURCE_DATE_EPOCH),0)' $(DIST)

## deb                 Debian packages, into build/deb/
deb: $(BUILD)/deb/made

$(BUILD)/deb/made: $(DIST)
	$(call say,DEB,$(@D))
	$(Q)tests/deps.sh deb
	$(Q)user/packaging/deb.sh '$(VERSION)' $(DIST) $(@D)
	$(Q)touch $@

# Needs packages of the distribution, which rpm does not know where another manager has installed them.
RPMBUILD_OPTIONS ?= $(if $(wildcard /var/lib/dpkg/status),--nodeps)

## rpm                 RPM packages, into build/rpm/
rpm: $(BUILD)/rpm/made

$(BUILD)/rpm/made: $(DIST)
	$(call say,RPM,$(@D))
	$(Q)tests/deps.sh rpm
	$(Q)RPMBUILD_OPTIONS='$(RPMBUILD_OPTIONS)' user/packaging/rpm.sh '$(VERSION)' $(DIST) $(@D)
	$(Q)touch $@

## tarball             the command with its libraries, for hosts of other releases, into build/
TARBALL = xputrace-$(VERSION)-$(firstword $(subst -, ,$(TRIPLET)))
tarball: all
	$(call say,TAR,$(BUILD)/$(TARBALL).tar.gz)
	$(Q)tests/deps.sh tarball
	$(Q)rm -rf $(BUILD)/$(TARBALL)
	$(Q)$(MAKE) --no-print-directory install prefix= DESTDIR=$(CURDIR)/$(BUILD)/$(TARBALL) libdir=/lib pythondir=/share/xputrace/python \
		NODE_HEADERS= >/dev/null
	$(Q)user/packaging/tarball.sh $(BUILD)/$(TARBALL) $(BUILD)/$(TARBALL).tar.gz $(TARBALL) '$(or $(SOURCE_DATE_EPOCH),0)'
	$(Q)rm -rf $(BUILD)/$(TARBALL)

# ---- installing ----

# Where they stand here, for the links between them.
DOCUMENTS = $(wildcard *.md docs/*.md docs/examples/*.c user/*/*.md user/*/*/*.md) LICENSE docs/page.png user/packaging/Containerfile

# For the machine that installs, not for a package.
RUN_LDCONFIG = $(if $(DESTDIR),,@PATH="$$PATH:/usr/sbin:/sbin"; if [ "$$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi)

# Of the headers' comments: a page for each header, with the project in its name, and for each function and struct.
$(BUILD)/man3/made: docs/Doxyfile user/cli/man/xpt_region.3 $(HEADERS)
	@rm -rf $(@D) && mkdir -p $(@D)/doxygen
	@for each in $$(sed -n 's/^\.F[no] \(xpt_regions*_[a-z_]*\).*/\1/p' user/cli/man/xpt_region.3); do \
		echo '.so man3/xpt_region.3' >$(@D)/$$each.3; \
	done
	@if command -v doxygen >/dev/null; then \
		echo "  MAN3    $(@D)"; \
		{ cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = $(@D)/doxygen"; } | doxygen - && cd $(@D)/doxygen/man/man3 && \
		for each in xpt_*.3 *.h.3; do \
			case $$each in *.h.3) to=xputrace_$$each ;; *) to=$$each ;; esac; \
			sed -e 's@^\.so man3/@&xputrace_@' -e 's@\\fC@\\fB@g' -e "s@^'@\\\\\&'@" -e '/^\.SH NAME$$/{n;/\\-/!s/$$/ \\- structure of libxputrace/}' \
				"$$each" >"../../../$$to" || exit; \
		done; \
	else \
		echo "doxygen is not installed: no manual pages of the C library's functions are made"; \
	fi
	@rm -rf $(@D)/doxygen && touch $@

## install             install command, libraries, headers, manual pages, documents, descriptions, completions, systemd unit
install: all $(BUILD)/man3/made
	$(INSTALL) -d $(addprefix $(DESTDIR),$(bindir) $(libdir)/pkgconfig $(includedir)/xputrace $(mandir)/man1 $(mandir)/man3 \
		$(datadir)/xputrace/runtimes $(datadir)/xputrace/drivers $(datadir)/bash-completion/completions \
		$(datadir)/zsh/site-functions $(datadir)/fish/vendor_completions.d $(unitdir))
	$(INSTALL) -m 755 $(BUILD)/xputrace $(DESTDIR)$(bindir)/xputrace
	$(INSTALL) -m 644 $(BUILD)/libxputrace.a $(DESTDIR)$(libdir)/libxputrace.a
	$(INSTALL) -m 755 $(BUILD)/$(SHARED_NAME) $(DESTDIR)$(libdir)/$(SHARED_NAME)
	ln -sf $(SHARED_NAME) $(DESTDIR)$(libdir)/libxputrace.so
	$(INSTALL) -m 644 $(BUILD)/xputrace.pc $(DESTDIR)$(libdir)/pkgconfig/xputrace.pc
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(includedir)/xputrace/
	$(INSTALL) -m 644 $(MANUALS) $(DESTDIR)$(mandir)/man1/
	for each in $(LIBRARY_MANUALS) $(BUILD)/man3/*.3; do \
		[ ! -e $$each ] || $(INSTALL) -m 644 $$each $(DESTDIR)$(mandir)/man3/ || exit; \
	done
	$(if $(RUNTIMES),$(INSTALL) -m 644 $(RUNTIMES) $(DESTDIR)$(datadir)/xputrace/runtimes/)
	$(if $(DRIVERS),$(INSTALL) -m 644 $(DRIVERS) $(DESTDIR)$(datadir)/xputrace/drivers/)
	for each in $(wildcard user/packaging/fleet/*); do $(INSTALL) -D -m 644 $$each $(DESTDIR)$(datadir)/xputrace/fleet/$${each##*/} || exit; done
	$(INSTALL) -D -m 644 python/xputrace/__init__.py $(DESTDIR)$(pythondir)/xputrace/__init__.py
	for each in $(if $(NODE_ADDON),index.mjs package.json xputrace.node); do \
		$(INSTALL) -D -m 644 $(BUILD)/node/$$each $(DESTDIR)$(nodedir)/$$each || exit; \
	done
	$(INSTALL) -m 644 $(UNITS:%=$(BUILD)/%) $(DESTDIR)$(unitdir)/
	$(INSTALL) -m 644 user/cli/completion/xputrace.bash $(DESTDIR)$(datadir)/bash-completion/completions/xputrace
	$(INSTALL) -m 644 user/cli/completion/_xputrace $(DESTDIR)$(datadir)/zsh/site-functions/_xputrace
	$(INSTALL) -m 644 user/cli/completion/xputrace.fish $(DESTDIR)$(datadir)/fish/vendor_completions.d/xputrace.fish
	for each in $(DOCUMENTS); do $(INSTALL) -D -m 644 $$each $(DESTDIR)$(docdir)/$$each || exit; done
	$(RUN_LDCONFIG)

## uninstall           remove what install has put there
uninstall:
	rm -f $(DESTDIR)$(bindir)/xputrace $(DESTDIR)$(libdir)/libxputrace.a $(DESTDIR)$(libdir)/libxputrace.so \
		$(DESTDIR)$(libdir)/$(SHARED_NAME) $(DESTDIR)$(libdir)/pkgconfig/xputrace.pc \
		$(addprefix $(DESTDIR)$(mandir)/man1/,$(notdir $(MANUALS))) \
		$(DESTDIR)$(mandir)/man3/xpt_*.3 $(DESTDIR)$(mandir)/man3/xputrace_*.h.3 \
		$(UNITS:%=$(DESTDIR)$(unitdir)/%) $(DESTDIR)$(datadir)/bash-completion/completions/xputrace \
		$(DESTDIR)$(datadir)/zsh/site-functions/_xputrace \
		$(DESTDIR)$(datadir)/fish/vendor_completions.d/xputrace.fish
	rm -rf $(DESTDIR)$(includedir)/xputrace $(DESTDIR)$(datadir)/xputrace $(DESTDIR)$(docdir) $(DESTDIR)$(pythondir)/xputrace
	$(RUN_LDCONFIG)

## clean               remove build/
clean:
	rm -rf build

## help                this text
help:
	@awk 'BEGIN { print "make [TARGET]... [VARIABLE=VALUE]..." } \
		/^## (targets|variables)$$/ { kind = toupper(substr($$2, 1, 1)) substr($$2, 2); next } \
		/^## / { text[kind] = text[kind] "  " substr($$0, 4) "\n" } \
		END { printf "\nTargets:\n%s\nVariables:\n%s", text["Targets"], text["Variables"] }' Makefile

-include $(patsubst %.o,%.d,$(LIBRARY_OBJECTS) $(CLI_OBJECTS) $(UNIT_OBJECTS) $(SANITIZED_OBJECTS) $(FUZZ_OBJECTS) \
	$(FUZZ_SOURCES:%.c=$(BUILD)/fuzz/obj/%.o) $(COVERAGE_OBJECTS) $(FUZZ_SOURCES:%.c=$(BUILD)/coverage/obj/%.o) \
	$(BUILD)/obj/tests/e2e/code_read.d $(BENCH_SOURCES:%.c=$(BUILD)/obj/%.o) \
	$(BENCH_TARGET_SOURCES:%.c=$(BUILD)/obj/%.o) \
	$(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/bpf/part/%.bpf.o) $(BPF_APART:%=$(BUILD)/bpf/part/%.bpf.o))
