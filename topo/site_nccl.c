/* Reads a node from NCCL's topology in XML: what NCCL_TOPO_DUMP_FILE leaves, or the files
 * that clouds give to NCCL_TOPO_FILE, which lack GPUs and NICs inside their PCI devices
 * (NCCL, src/graph/xml.cc and topo.cc). */
#include "base/map.h"
#include "topo/site_priv.h"
#include "topo/site_xml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_LINKS 1000

typedef struct device {
    int place; /* the PCI device, or the CPU of a NIC that has none */
    int own;   /* element "gpu" or "net"; -1: the file has only the PCI device */
    long number;
} device;

typedef struct topology {
    ms_site_reader *r;
    ms_xml xml;
    device gpus[MS_SITE_MAX_DEVICES], nics[MS_SITE_MAX_DEVICES];
    int num_gpus, num_nics;
    bool has_links;                    /* the file tells NVLinks: it has elements "gpu" */
    int switches[MS_SITE_MAX_DEVICES]; /* NVLinks of a GPU into switches */
    int *direct;                       /* (num_gpus, num_gpus) NVLinks to another GPU */
} topology;

static const ms_xml_element *element(const topology *t, int index)
{
    return &t->xml.elements[index];
}

static bool is(const topology *t, int index, const char *name)
{
    return index >= 0 && strcmp(element(t, index)->name, name) == 0;
}

static ms_status fail(const topology *t, int index, const char *message)
{
    const ms_xml_element *e = element(t, index);
    return ms_fail(t->r->cx, MS_EINPUT, ms_site_loc(t->r, e->line, e->column), "%s",
                   message);
}

/* Reads a whole number from 0 to `most`. */
static ms_status read_integer(const topology *t, int index, const char *attribute,
                              long most, long *out)
{
    const char *text = ms_xml_attribute(element(t, index), attribute);
    char *end;
    if (text == NULL)
        return fail(
            t, index,
            ms_arena_printf(t->r->cx->arena, "attribute %s is missing", attribute));
    *out = strtol(text, &end, 10);
    if (end == text || *end != '\0' || *out < 0 || *out > most)
        return fail(t, index,
                    ms_arena_printf(t->r->cx->arena, "%s=\"%s\" must be from 0 to %ld",
                                    attribute, text, most));
    return MS_OK;
}

/* Whether the class of a PCI device begins with some digits, "0x03". */
static bool has_class(const topology *t, int index, const char *digits)
{
    const char *class = ms_xml_attribute(element(t, index), "class");
    return class != NULL && strncasecmp(class, digits, strlen(digits)) == 0;
}

/* ---- devices ---- */

static ms_status add_device(const topology *t, device *list, int *num, device added)
{
    if (*num == MS_SITE_MAX_DEVICES)
        return fail(t, added.place, "a node has at most 128 GPUs and 128 NICs");
    list[(*num)++] = added;
    return MS_OK;
}

static ms_status add_gpu(topology *t, int index)
{
    long number = 0;
    if (!is(t, element(t, index)->parent, "pci"))
        return fail(t, index, "a gpu must stand in a pci");
    MS_TRY(read_integer(t, index, "dev", 1000000, &number));
    for (int i = 0; i < t->num_gpus; i++)
        if (t->gpus[i].own >= 0 && t->gpus[i].number == number)
            return fail(t, index, "two GPUs have this dev");
    t->has_links = true;
    return add_device(t, t->gpus, &t->num_gpus,
                      (device){element(t, index)->parent, index, number});
}

static ms_status add_nic(topology *t, int index)
{
    int nic = element(t, index)->parent;
    int holder = is(t, nic, "nic") ? element(t, nic)->parent : -1;
    if (!is(t, holder, "pci") && !is(t, holder, "cpu"))
        return fail(t, index, "a net must stand in a nic of a pci or cpu");
    return add_device(t, t->nics, &t->num_nics, (device){holder, index, 0});
}

/* A PCI device of a file for NCCL_TOPO_FILE, which has no elements in it. */
static ms_status add_bare(topology *t, int index)
{
    if (has_class(t, index, "0x03"))
        return add_device(t, t->gpus, &t->num_gpus, (device){index, -1, t->num_gpus});
    if (has_class(t, index, "0x02"))
        return add_device(t, t->nics, &t->num_nics, (device){index, -1, 0});
    return MS_OK;
}

/* MS_EINPUT: a CPU of another host than the first one. */
static ms_status check_host(const topology *t, int index, const char **host)
{
    const char *own = ms_xml_attribute(element(t, index), "host_hash");
    if (element(t, index)->parent != 0)
        return fail(t, index, "a cpu must stand in the system");
    if (own != NULL && *host != NULL && strcmp(own, *host) != 0) {
        fail(t, index, "CPUs of two hosts, but a node is one host");
        return ms_hint(t->r->cx, "dump the topology in a job on one host");
    }
    *host = own != NULL ? own : *host;
    return MS_OK;
}

static ms_status find_devices(topology *t)
{
    const char *host = NULL;
    for (int i = 1; i < t->xml.num; i++) {
        int parent = element(t, i)->parent;
        bool is_pci = is(t, i, "pci");
        if (is(t, i, "cpu"))
            MS_TRY(check_host(t, i, &host));
        if (is_pci && !is(t, parent, "cpu") && !is(t, parent, "pci"))
            return fail(t, i, "a pci must stand in a cpu or pci");
        if (is(t, i, "gpu"))
            MS_TRY(add_gpu(t, i));
        if (is(t, i, "net"))
            MS_TRY(add_nic(t, i));
        if (is_pci && element(t, i)->num_children == 0)
            MS_TRY(add_bare(t, i));
    }
    return MS_OK;
}

static int by_number(const void *a, const void *b)
{
    const device *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* ---- NVLinks ---- */

/* The GPU at a bus address; -1: none. */
static int gpu_at(const topology *t, const char *address)
{
    for (int g = 0; g < t->num_gpus; g++) {
        const char *own = ms_xml_attribute(element(t, t->gpus[g].place), "busid");
        if (own != NULL && strcasecmp(own, address) == 0)
            return g;
    }
    return -1;
}

static ms_status read_nvlink(topology *t, int index, int gpu)
{
    const char *target = ms_xml_attribute(element(t, index), "target");
    const char *class = ms_xml_attribute(element(t, index), "tclass");
    long count = 0;
    MS_TRY(read_integer(t, index, "count", MAX_LINKS, &count));
    if (target == NULL)
        return fail(t, index, "attribute target is missing");
    int other = gpu_at(t, target);
    if (other == gpu)
        return fail(t, index, "a GPU has no NVLink to itself");
    if (other >= 0) {
        t->direct[gpu * t->num_gpus + other] += (int)count;
        return MS_OK;
    }
    bool is_cpu = class != NULL && strncasecmp(class, "0x068001", 8) == 0;
    t->switches[gpu] += is_cpu ? 0 : (int)count;
    return MS_OK;
}

static int gpu_of_element(const topology *t, int own)
{
    for (int g = 0; g < t->num_gpus; g++)
        if (t->gpus[g].own == own)
            return g;
    return -1;
}

/* Refuses two GPUs that tell different numbers of links between them. */
static ms_status refuse_pair(const topology *t, int g, int h)
{
    const device *gpu = &t->gpus[g];
    return fail(t, gpu->own < 0 ? gpu->place : gpu->own,
                ms_arena_printf(t->r->cx->arena,
                                "GPU%d has %d NVLinks to GPU%d, which has %d to it", g,
                                t->direct[g * t->num_gpus + h], h,
                                t->direct[h * t->num_gpus + g]));
}

/* Sets the NVLinks of all pairs; MS_EINPUT: two GPUs tell different numbers. */
static ms_status set_links(topology *t, ms_site_node *node)
{
    int n = t->num_gpus;
    t->direct = MS_NEW_ARRAY(t->r->cx->arena, n * n, int);
    for (int i = 1; i < t->xml.num; i++) {
        int gpu = is(t, i, "nvlink") ? gpu_of_element(t, element(t, i)->parent) : -1;
        if (gpu >= 0)
            MS_TRY(read_nvlink(t, i, gpu));
    }
    for (int g = 0; g < n; g++) {
        for (int h = 0; h < g; h++) {
            int there = t->direct[g * n + h], back = t->direct[h * n + g];
            int shared =
                t->switches[g] < t->switches[h] ? t->switches[g] : t->switches[h];
            if (there != back)
                return refuse_pair(t, g, h);
            node->links[g * n + h] = node->links[h * n + g] = there + shared;
        }
    }
    return MS_OK;
}

/* ---- rates ---- */

/* Bytes per second each way of a device's PCIe link, less what coding takes: 8b/10b up to
 * 5 GT/s, 128b/130b up to 32 GT/s, 236 of 256 bytes of a FLIT above (PCI Express base
 * specification); 0: the file does not tell. */
static double pcie_rate(const topology *t, int index)
{
    const char *speed = ms_xml_attribute(element(t, index), "link_speed");
    const char *width = ms_xml_attribute(element(t, index), "link_width");
    if (speed == NULL || width == NULL)
        return 0.0;
    double transfers_per_s = strtod(speed, NULL) * 1e9, lanes = strtod(width, NULL);
    if (!(transfers_per_s >= 1e9 && transfers_per_s <= 1e12 && lanes >= 1.0 &&
          lanes <= 32.0))
        return 0.0;
    double coding = transfers_per_s <= 5e9    ? 8.0 / 10.0
                    : transfers_per_s <= 32e9 ? 128.0 / 130.0
                                              : 236.0 / 256.0;
    return transfers_per_s * lanes * coding / 8.0;
}

/* Reads the speed of a NIC, megabits per second; 0: not told, which NCCL writes as 0, too. */
static ms_status read_speed(const topology *t, int index, double *bytes_per_s)
{
    const char *text = index < 0 ? NULL : ms_xml_attribute(element(t, index), "speed");
    char *end;
    *bytes_per_s = 0.0;
    if (text == NULL)
        return MS_OK;
    double megabits_per_s = strtod(text, &end);
    if (end == text || *end != '\0' || !(megabits_per_s >= -1.0 && megabits_per_s <= 1e8))
        return fail(t, index,
                    ms_arena_printf(t->r->cx->arena,
                                    "speed=\"%s\" must be megabits per second", text));
    *bytes_per_s = fmax(megabits_per_s, 0.0) * 1e6 / 8.0;
    return MS_OK;
}

/* The name of a NIC, or its bus address. */
static const char *nic_name(const topology *t, const device *nic)
{
    const char *name =
        nic->own < 0 ? NULL : ms_xml_attribute(element(t, nic->own), "name");
    const char *address = ms_xml_attribute(element(t, nic->place), "busid");
    if (name != NULL && name[0] != '\0')
        return name;
    return address != NULL ? address : "without name";
}

/* Sets name and rate of a NIC: its speed, or that of its PCIe link if this is less. */
static ms_status set_nic(const topology *t, int n, ms_site_node *node)
{
    const device *nic = &t->nics[n];
    double pcie = is(t, nic->place, "pci") ? pcie_rate(t, nic->place) : 0.0, rate;
    MS_TRY(read_speed(t, nic->own, &rate));
    node->nics[n] = nic_name(t, nic);
    if (pcie > 0.0 && pcie < rate) {
        ms_texts_print(t->r->cx->arena, &t->r->out->found,
                       "NIC %s of %g Gb/s has a PCIe link of %.4g Gb/s", node->nics[n],
                       rate * 8e-9, pcie * 8e-9);
        rate = pcie;
    }
    node->nic_bytes_per_s[n] = rate;
    return MS_OK;
}

/* ---- paths ---- */

/* How near two elements are: the nearest ancestor of both, and PCI bridges on the way. */
static ms_site_path path_between(const topology *t, int a, int b)
{
    int bridges = 0;
    while (a != b) {
        int *later = a > b ? &a : &b; /* elements stand behind those around them */
        *later = element(t, *later)->parent;
        bridges += *later >= 0 && is(t, *later, "pci");
    }
    if (is(t, a, "pci"))
        return bridges <= 2 ? MS_PATH_PIX : MS_PATH_PXB;
    return is(t, a, "cpu") ? MS_PATH_PHB : MS_PATH_SYS;
}

static ms_status check_device(const topology *t)
{
    double wanted = t->r->options->base->device.compute_capability;
    for (int g = 0; g < t->num_gpus; g++) {
        int own = t->gpus[g].own;
        long sm = 0;
        if (own < 0 || isnan(wanted) || ms_xml_attribute(element(t, own), "sm") == NULL)
            continue;
        MS_TRY(read_integer(t, own, "sm", 1000, &sm));
        if (sm == lround(wanted * 10.0))
            continue;
        fail(t, own,
             ms_arena_printf(t->r->cx->arena,
                             "a GPU of compute capability %.1f, but those of cluster "
                             "\"%s\" have %.1f",
                             (double)sm / 10.0, t->r->options->base->name, wanted));
        return ms_hint(t->r->cx, "name a base with such GPUs: --cluster NAME|FILE");
    }
    return MS_OK;
}

static ms_status apply(topology *t)
{
    ms_site_node node;
    ms_site_node_open(t->r->cx->arena, t->num_gpus, t->num_nics, &node);
    node.has_links = t->has_links;
    if (t->has_links)
        MS_TRY(set_links(t, &node));
    node.pcie_bytes_per_s = INFINITY;
    for (int g = 0; g < t->num_gpus; g++) {
        node.pcie_bytes_per_s =
            fmin(node.pcie_bytes_per_s, pcie_rate(t, t->gpus[g].place));
        for (int n = 0; n < t->num_nics; n++)
            node.paths[g * t->num_nics + n] =
                (int)path_between(t, t->gpus[g].place, t->nics[n].place);
    }
    for (int n = 0; n < t->num_nics; n++)
        MS_TRY(set_nic(t, n, &node));
    return ms_site_node_apply(t->r, &node);
}

static ms_status check_root(const topology *t)
{
    const char *version = ms_xml_attribute(element(t, 0), "version");
    if (!is(t, 0, "system")) {
        fail(t, 0, "the outermost element must be a system");
        return ms_hint(t->r->cx,
                       "NCCL writes it to the file of NCCL_TOPO_DUMP_FILE; that "
                       "of NCCL_GRAPH_DUMP_FILE is another");
    }
    if (version == NULL || strcmp(version, "1") != 0)
        return fail(t, 0, "version=\"1\" is expected");
    return MS_OK;
}

/* Elements that say nothing about a cluster, as facts that are ignored. */
static void note_ignored(const topology *t)
{
    static const char *const known[] = {"cpu", "pci",    "gpu",     "nic",
                                        "net", "nvlink", "pcilink", NULL};
    ms_map others = {.arena = t->r->cx->arena};
    for (int i = 1; i < t->xml.num && others.num < 8; i++) {
        const char *name = element(t, i)->name;
        int before = others.num;
        if (ms_choice_find(name, known) < 0 &&
            ms_map_add(&others, name, strlen(name)) == before)
            ms_texts_print(t->r->cx->arena, &t->r->out->ignored,
                           "elements %s, such as that of line %d", name,
                           element(t, i)->line);
    }
}

ms_status ms_site_read_nccl(ms_site_reader *r, const char *text, size_t length)
{
    topology *t = MS_NEW(r->cx->arena, topology);
    t->r = r;
    MS_TRY(ms_xml_read(r->cx, r->options->name, text, length, &t->xml));
    MS_TRY(check_root(t));
    MS_TRY(find_devices(t));
    MS_TRY(check_device(t));
    qsort(t->gpus, (size_t)t->num_gpus, sizeof *t->gpus, by_number);
    note_ignored(t);
    return apply(t);
}
