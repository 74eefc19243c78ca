# The library for other programs: libmeshsim.so.0, which exports what api/meshsim.h declares, and libmeshsim.a.
# Position-independent objects of their own, of the rooms that the program computes with; no MPI, BLAS or CUDA.

SONAME := libmeshsim.so.0
pic := $B/pic
pic_objs := $(patsubst %.c,$(pic)/%.o,$(LIB_SRCS) $(API_SRCS))
API_LIBS := -lcjson -lyaml $(expat_lib) -lgsl -lgslcblas -lm -lpthread

$(pic)/base/paths.o: CPPFLAGS += -DMS_SOURCE_DIR='"$(SOURCE_DIR)"'
$(pic)/%.o: %.c
	@mkdir -p $(@D)
	$(call run,CC,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

$B/$(SONAME): $(pic_objs) api/meshsim.map
	$(call run,LINK,$@)$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=api/meshsim.map -Wl,-z,defs $(pic_objs) -o $@ $(LDFLAGS) $(API_LIBS) -ldl

# One object with the exported names alone, so that others of the library cannot clash with a program's.
$B/api/libmeshsim.a: $(pic_objs)
	@mkdir -p $(@D); rm -f $@
	$(call run,AR,$@)$(LD) -r -o $(@:.a=.o) $(pic_objs) && objcopy -w --keep-global-symbol='meshsim_*' $(@:.a=.o) && $(AR) rcs $@ $(@:.a=.o)

# ... and for tests, which see its inside
API_LIB := $B/libmeshsim_api.a
$(API_LIB): $(call obj,$(API_SRCS))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

.PHONY: library
library: $B/$(SONAME) $B/api/libmeshsim.a ## libmeshsim.so.0 and libmeshsim.a for other programs (api/meshsim.h)

-include $(pic_objs:.o=.d)
