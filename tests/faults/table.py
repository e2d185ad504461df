"""All campaigns. A new one is a file with its `begin`, and a row here."""

from __future__ import annotations

from faults.campaign import Campaign
from faults.canaries import CANARIES
from faults.files import FILES
from faults.flips import FLIPS
from faults.folders import FOLDERS
from faults.kills import KILLS
from faults.learned import LEARNED
from faults.starts import STARTS
from faults.streams import STREAMS
from faults.threads import SIXTEEN

CAMPAIGNS: dict[str, Campaign] = {
    campaign.name: campaign
    for campaign in (CANARIES, FILES, FLIPS, FOLDERS, LEARNED, STARTS, STREAMS, SIXTEEN, KILLS)
}
