/* The library that is linked is the one of the header. */
#include "spikelet.h"
#include <stdio.h>

int main(void)
{
    printf("%s\n", spk_status_str(SPK_OK));
    return spk_api_version() != SPK_API_VERSION || spk_stream_size("", 0) != 0;
}
