#include "tests/support/run_tables.h"

#include "base/csv.h"

ms_status ms_pubruns_load(ms_ctx *cx, const char *path, ms_pubruns *out)
{
    ms_csv csv;
    MS_TRY(ms_csv_load(cx, path, &csv));
    return ms_pubruns_read(cx, path, csv.text, csv.length, out);
}

ms_status ms_collective_rows_load(ms_ctx *cx, const char *path, ms_collective_rows *out)
{
    ms_csv csv;
    MS_TRY(ms_csv_load(cx, path, &csv));
    return ms_collective_rows_read(cx, path, csv.text, csv.length, out);
}
