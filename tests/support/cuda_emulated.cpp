/* Emulation of GPU threads on a CPU: blocks, warps, and a fiber for each thread. It needs
 * no C++ run time, so that programs in C can be linked with it. */
#include "tests/support/cuda_emulated.h"

#include <cstdio>
#include <pthread.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

/* threads of a block; CUDA C++ Programming Guide, table "Technical Specifications" */
#define MAX_THREADS 1024
#define WARP        32
#define MAX_WARPS   (MAX_THREADS / WARP)
#define MAX_GRID_YZ 65535
#define MAX_DYNAMIC (227 * 1024) /* shared memory of a block at compute capability 9.0 */
#define MAX_STATIC  (48 * 1024)
#define MAX_SITES   32
#define MAX_PENDING 256
#define STACK_BYTES (256 * 1024)
/* stacks begin at different offsets, so that they do not share the same cache lines */
#define STACK_SHIFT  832
#define STACK_SHIFTS 32768
#define STACK_CANARY 0x5afe57ac6b0770a1UL
#define GARBAGE      0xff /* byte of uninitialised memory: floats are NaN, integers -1 */

struct pending_copy {
    void *to;
    const void *from; /* source of the copy; NULL: zeros are written */
    size_t bytes;
    int group;
};

/* A stack, and the thread of the block that is on it. */
struct fiber {
#ifdef __x86_64__
    void *saved;
#else
    ucontext_t context;
#endif
    char *stack; /* own stack; NULL: the fiber is the caller of the launch */
    const void *stack_bottom;
    size_t stack_bytes;
    void *sanitizer;
    int thread;
    int num_pending, group;
    pending_copy *pending; /* asynchronous copies not done yet; NULL: none */
};

struct warp {
    int num_lanes, num_arrived;
    unsigned long generation;
    const char *what;
    fiber *waiting[WARP];
    alignas(16) unsigned char slots[2][WARP * MS_EMULATED_SLOT_BYTES];
};

struct shared_site {
    const void *site;
    void *memory;
    size_t bytes;
};

/* Rule by which the next of the runnable fibers is chosen. */
enum order_of_fibers {
    FIRST_COME, /* all fibers advance at about the same pace */
    LAST_COME,  /* one warp runs as long as it can, far ahead of the others */
    ANY
};

/* State with which one thread of the test program runs kernels. */
struct machine {
    const ms_emulated_launch *launch;
    uint64_t random;
    order_of_fibers policy;
    fiber caller;
    fiber *current, *previous, *next;
    fiber *idle[MAX_THREADS], *all[MAX_THREADS];
    int num_idle, num_fibers;
    fiber *ready[MAX_THREADS]; /* ring buffer of runnable fibers */
    int num_ready, first_ready;
    int order[MAX_THREADS];
    int num_threads, num_started, num_ended;
    fiber *at_barrier[MAX_THREADS];
    int num_at_barrier, barrier_line;
    warp warps[MAX_WARPS];
    shared_site sites[MAX_SITES];
    int num_sites;
    size_t static_bytes;
    void *dynamic;
};

__thread ms_emulated_place ms_emulated_here;
static __thread machine *mine;
static unsigned long seed_of_all, num_launches;
static pthread_key_t machine_key;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

void ms_cuda_emulated_set_seed(unsigned long seed)
{
    __atomic_store_n(&seed_of_all, seed, __ATOMIC_RELAXED);
}

unsigned long ms_cuda_emulated_num_launches(void)
{
    return __atomic_load_n(&num_launches, __ATOMIC_RELAXED);
}

void ms_emulated_fail(const char *why)
{
    const uint3 &t = threadIdx, &b = blockIdx;
    std::fprintf(stderr, "emulated kernel, block (%u %u %u) thread (%u %u %u): %s\n", b.x,
                 b.y, b.z, t.x, t.y, t.z, why);
    std::abort();
}

/* ---- changing from one stack to another ---- */

#ifdef __x86_64__
/* Saves the registers that a function preserves for its caller on the stack it leaves; the
 * others are saved by the caller (System V ABI, section 3.2.1). */
extern "C" void ms_emulated_switch(void **save, void *to);
asm(".text\n"
    ".globl ms_emulated_switch\n"
    ".hidden ms_emulated_switch\n"
    ".type ms_emulated_switch, @function\n"
    "ms_emulated_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
    "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n"
    "    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size ms_emulated_switch, .-ms_emulated_switch\n");
#define KEPT_REGISTERS 6
#endif

/* Runs first on a stack after every switch to it. */
static void arrive(machine *m, fiber *self)
{
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(self->sanitizer, &bottom, &bytes);
    if (m->previous->stack == NULL) {
        m->previous->stack_bottom = bottom;
        m->previous->stack_bytes = bytes;
    }
#endif
    m->current = self;
}

static void become(machine *m, int thread)
{
    const dim3 &size = m->launch->block;
    unsigned at = (unsigned)thread;
    m->current->thread = thread;
    threadIdx = {at % size.x, at / size.x % size.y, at / size.x / size.y};
}

static void change_to(machine *m, fiber *to)
{
    fiber *self = m->current;
    if (to == self)
        return;
    m->previous = self;
    m->next = to;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&self->sanitizer, to->stack_bottom, to->stack_bytes);
#elif defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to->sanitizer, 0);
#endif
#ifdef __x86_64__
    ms_emulated_switch(&self->saved, to->saved);
#else
    swapcontext(&self->context, &to->context);
#endif
    arrive(m, self);
}

/* ---- choice of the next fiber ---- */

static uint64_t draw(machine *m, uint64_t bound)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (m->random >> 11) % bound;
}

static bool starts_another(machine *m)
{
    if (m->num_started == m->num_threads || m->num_ready == 0)
        return m->num_started < m->num_threads;
    return m->policy == FIRST_COME || (m->policy == ANY && draw(m, 2) == 0);
}

static fiber **ready_at(machine *m, int i)
{
    return &m->ready[(m->first_ready + i) % MAX_THREADS];
}

static fiber *take_ready(machine *m)
{
    fiber **last = ready_at(m, --m->num_ready), **taken_at = last;
    if (m->policy == FIRST_COME) {
        taken_at = ready_at(m, 0);
        m->first_ready = (m->first_ready + 1) % MAX_THREADS;
        return *taken_at;
    }
    if (m->policy == ANY)
        taken_at = ready_at(m, (int)draw(m, (uint64_t)m->num_ready + 1));
    fiber *taken = *taken_at;
    *taken_at = *last;
    return taken;
}

static fiber *make_fiber(machine *m);

static fiber *next_fiber(machine *m)
{
    if (starts_another(m))
        return m->num_idle > 0 ? m->idle[--m->num_idle] : make_fiber(m);
    return m->num_ready > 0 ? take_ready(m) : &m->caller;
}

/* Runs threads one after another until one has to wait while others could go on. */
static void run_threads(void)
{
    machine *m = mine;
    fiber *self = m->next;
    arrive(m, self);
    for (;;) {
        self->num_pending = 0;
        self->group = 0;
        become(m, m->order[m->num_started++]);
        m->launch->thread(m->launch->state);
        m->num_ended++;
        if (starts_another(m))
            continue;
        m->idle[m->num_idle++] = self;
        change_to(m, m->num_ready > 0 ? take_ready(m) : &m->caller);
    }
}

static char *map_stack(void)
{
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        ms_emulated_fail("no memory for the stack of a thread");
    *static_cast<unsigned long *>(stack) = STACK_CANARY;
    return static_cast<char *>(stack);
}

static fiber *make_fiber(machine *m)
{
    auto *made = static_cast<fiber *>(std::calloc(1, sizeof(fiber)));
    if (made == NULL)
        ms_emulated_fail("no memory for a thread");
    made->stack = map_stack();
    made->stack_bottom = made->stack;
    made->stack_bytes = STACK_BYTES;
#if defined(__SANITIZE_THREAD__)
    made->sanitizer = __tsan_create_fiber(0);
#endif
#ifdef __x86_64__
    /* initial stack: registers to pop, the address to return to, and an unused address */
    size_t shift = (size_t)m->num_fibers * STACK_SHIFT % STACK_SHIFTS;
    void **top = reinterpret_cast<void **>(made->stack + STACK_BYTES - shift) - 2;
    top[0] = reinterpret_cast<void *>(run_threads);
    made->saved = top - KEPT_REGISTERS;
#else
    getcontext(&made->context);
    made->context.uc_stack.ss_sp = made->stack;
    made->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&made->context, run_threads, 0);
#endif
    m->all[m->num_fibers++] = made;
    return made;
}

/* ---- waiting ---- */

static void wait_for_others(machine *m)
{
    const uint3 place = threadIdx;
    change_to(m, next_fiber(m));
    threadIdx = place;
}

/* Makes the waiting fibers and the one that arrived last runnable. */
static void release(machine *m, fiber **waiting, int num)
{
    for (int i = 0; i < num; i++)
        *ready_at(m, m->num_ready++) = waiting[i];
    wait_for_others(m);
}

void ms_emulated_block_barrier(int line)
{
    machine *m = mine;
    if (m->num_at_barrier > 0 && m->barrier_line != line)
        ms_emulated_fail("threads of a block wait at different barriers");
    m->barrier_line = line;
    m->at_barrier[m->num_at_barrier++] = m->current;
    if (m->num_at_barrier < m->num_threads) {
        wait_for_others(m);
        return;
    }
    m->num_at_barrier = 0;
    release(m, m->at_barrier, m->num_threads);
}

int ms_emulated_lane(void)
{
    return mine->current->thread % WARP;
}

static warp *my_warp(machine *m)
{
    return &m->warps[m->current->thread / WARP];
}

int ms_emulated_num_lanes(void)
{
    return my_warp(mine)->num_lanes;
}

/* Exchanges values between the lanes of a warp through two sets of slots in turn: a lane
 * cannot write to a set before all lanes have read it, since it writes to the other set
 * in between. */
const unsigned char *ms_emulated_warp_exchange(const char *what, const void *given,
                                               size_t bytes)
{
    machine *m = mine;
    warp *w = my_warp(m);
    unsigned char *slots = w->slots[w->generation % 2];
    if (bytes > MS_EMULATED_SLOT_BYTES)
        ms_emulated_fail("a lane gives too much");
    if (w->num_arrived > 0 && w->what != what && std::strcmp(w->what, what) != 0)
        ms_emulated_fail("lanes of a warp are at different operations");
    if (bytes > 0)
        std::memcpy(slots + (size_t)ms_emulated_lane() * MS_EMULATED_SLOT_BYTES, given,
                    bytes);
    w->what = what;
    w->waiting[w->num_arrived++] = m->current;
    if (w->num_arrived < w->num_lanes) {
        wait_for_others(m);
        return slots;
    }
    w->num_arrived = 0;
    w->generation++;
    release(m, w->waiting, w->num_lanes);
    return slots;
}

/* ---- shared memory ---- */

static void *new_shared(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 128, bytes) != 0)
        ms_emulated_fail("no memory for shared memory");
    std::memset(memory, GARBAGE, bytes);
    return memory;
}

void *ms_emulated_shared(const void *site, size_t bytes)
{
    machine *m = mine;
    for (int i = 0; i < m->num_sites; i++)
        if (m->sites[i].site == site)
            return m->sites[i].memory;
    m->static_bytes += bytes;
    if (m->num_sites == MAX_SITES || m->static_bytes > MAX_STATIC)
        ms_emulated_fail("too much static shared memory");
    m->sites[m->num_sites] = {site, new_shared(bytes), bytes};
    return m->sites[m->num_sites++].memory;
}

void *ms_emulated_dynamic_shared(void)
{
    return mine->dynamic;
}

static void copy_now(const pending_copy &copy)
{
    if (copy.from != NULL)
        std::memcpy(copy.to, copy.from, copy.bytes);
    else
        std::memset(copy.to, 0, copy.bytes);
}

/* Copies at once or later, as a GPU may: half of the copies are early, none in the
 * natural order of threads. */
void ms_emulated_copy_later(void *to, const void *from, size_t bytes)
{
    fiber *self = mine->current;
    if (self->pending == NULL)
        self->pending =
            static_cast<pending_copy *>(std::calloc(MAX_PENDING, sizeof(pending_copy)));
    if (self->pending == NULL || self->num_pending == MAX_PENDING)
        ms_emulated_fail("too many copies that nothing waits for");
    self->pending[self->num_pending++] = {to, from, bytes, self->group};
    if (mine->policy != FIRST_COME && draw(mine, 2) == 0)
        copy_now(self->pending[--self->num_pending]);
}

void ms_emulated_commit(void)
{
    mine->current->group++;
}

void ms_emulated_wait(int num_left)
{
    fiber *self = mine->current;
    int kept = 0;
    for (int i = 0; i < self->num_pending; i++) {
        const pending_copy &copy = self->pending[i];
        if (copy.group >= self->group - num_left)
            self->pending[kept++] = copy;
        else
            copy_now(copy);
    }
    self->num_pending = kept;
}

/* ---- launches ---- */

static void close_machine(void *state)
{
    auto *m = static_cast<machine *>(state);
    for (int i = 0; i < m->num_fibers; i++) {
#if defined(__SANITIZE_THREAD__)
        __tsan_destroy_fiber(m->all[i]->sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
        /* the next mapping at this address need not be a stack */
        __asan_unpoison_memory_region(m->all[i]->stack, STACK_BYTES);
#endif
        munmap(m->all[i]->stack, STACK_BYTES);
        std::free(m->all[i]->pending);
        std::free(m->all[i]);
    }
    std::free(m);
}

static void make_key(void)
{
    if (pthread_key_create(&machine_key, close_machine) != 0)
        ms_emulated_fail("no key for the fibers of a thread");
}

static machine *open_machine(void)
{
    if (mine != NULL)
        return mine;
    mine = static_cast<machine *>(std::calloc(1, sizeof(machine)));
    if (mine == NULL || pthread_once(&machine_once, make_key) != 0 ||
        pthread_setspecific(machine_key, mine) != 0)
        ms_emulated_fail("no memory for the fibers of a thread");
    mine->current = &mine->caller;
#if defined(__SANITIZE_THREAD__)
    mine->caller.sanitizer = __tsan_get_current_fiber();
#endif
    return mine;
}

static void check_launch(const ms_emulated_launch *launch)
{
    const dim3 &grid = launch->grid, &block = launch->block;
    unsigned long threads = (unsigned long)block.x * block.y * block.z;
    if (threads == 0 || threads > MAX_THREADS)
        ms_emulated_fail("a launch with a wrong number of threads");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffU ||
        grid.y > MAX_GRID_YZ || grid.z > MAX_GRID_YZ)
        ms_emulated_fail("a launch with a wrong number of blocks");
    if (launch->shared_bytes > MAX_DYNAMIC)
        ms_emulated_fail("a launch with too much shared memory");
}

static void order_threads(machine *m, unsigned long seed)
{
    m->policy = seed == 0 ? FIRST_COME : seed % 2 == 1 ? LAST_COME : ANY;
    m->random = (seed + 1) * 0x9e3779b97f4a7c15UL;
    for (int i = 0; i < m->num_threads; i++)
        m->order[i] = seed == 1 ? m->num_threads - 1 - i : i;
    for (int i = m->num_threads - 1; i > 0 && seed > 1; i--) {
        int other = (int)draw(m, (uint64_t)i + 1), kept = m->order[i];
        m->order[i] = m->order[other];
        m->order[other] = kept;
    }
}

static void run_block(machine *m, unsigned long block)
{
    const dim3 &grid = m->launch->grid;
    blockIdx = {(unsigned)(block % grid.x), (unsigned)(block / grid.x % grid.y),
                (unsigned)(block / grid.x / grid.y)};
    for (int i = 0; i < m->num_sites; i++)
        std::memset(m->sites[i].memory, GARBAGE, m->sites[i].bytes);
    if (m->launch->shared_bytes > 0)
        std::memset(m->dynamic, GARBAGE, m->launch->shared_bytes);
    for (int i = 0; i * WARP < m->num_threads; i++) {
        int left = m->num_threads - i * WARP;
        m->warps[i].num_lanes = left < WARP ? left : WARP;
    }
    m->num_started = m->num_ended = m->num_ready = m->num_at_barrier = 0;
    change_to(m, next_fiber(m));
    if (m->num_ended < m->num_threads)
        ms_emulated_fail("threads wait for others that never come");
}

static void run_blocks(machine *m, unsigned long seed)
{
    const dim3 &grid = m->launch->grid;
    unsigned long num = (unsigned long)grid.x * grid.y * grid.z,
                  first = seed > 1 ? draw(m, num) : 0;
    for (unsigned long i = 0; i < num; i++)
        run_block(m, seed == 1 ? num - 1 - i : (i + first) % num);
}

void ms_emulated_run(const ms_emulated_launch *launch)
{
    machine *m = open_machine();
    unsigned long seed = __atomic_load_n(&seed_of_all, __ATOMIC_RELAXED);
    check_launch(launch);
    __atomic_fetch_add(&num_launches, 1, __ATOMIC_RELAXED);
    m->launch = launch;
    blockDim = {launch->block.x, launch->block.y, launch->block.z};
    gridDim = {launch->grid.x, launch->grid.y, launch->grid.z};
    m->num_threads = (int)(launch->block.x * launch->block.y * launch->block.z);
    m->num_sites = 0;
    m->static_bytes = 0;
    m->dynamic = launch->shared_bytes > 0 ? new_shared(launch->shared_bytes) : NULL;
    order_threads(m, seed);
    run_blocks(m, seed);
    for (int i = 0; i < m->num_fibers; i++)
        if (*reinterpret_cast<unsigned long *>(m->all[i]->stack) != STACK_CANARY)
            ms_emulated_fail("the stack of a thread overflowed");
    for (int i = 0; i < m->num_sites; i++)
        std::free(m->sites[i].memory);
    std::free(m->dynamic);
}
