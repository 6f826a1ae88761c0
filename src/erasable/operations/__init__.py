"""The use cases, written once for library, commands and service."""

from typing import TYPE_CHECKING

from erasable.front_door import load_on_first_use

if TYPE_CHECKING:
    from erasable.operations.attack import Probe, attack, attack_erased
    from erasable.operations.compare import ModelComparison
    from erasable.operations.do_not_learn import Outside
    from erasable.operations.forget import (
        Extent,
        Forgotten,
        forget,
        large_extent,
        learned_elsewhere,
        withdraw_submitted,
    )
    from erasable.operations.inspect import (
        GroupFacts,
        Holding,
        LoadedVersion,
        certificate_file,
        certificates_of,
        erasure_records,
        evaluate,
        groups,
        show,
        status,
    )
    from erasable.operations.learn import Learned, LearnedMore, learn, learn_more
    from erasable.operations.live import Live, Recommended
    from erasable.operations.people import near_in
    from erasable.operations.planning import plan, plan_random
    from erasable.operations.prepare import Inputs
    from erasable.operations.recommend import Recommendation, recommend, recommend_for_history
    from erasable.operations.recording import begin_new_queue, issuing_as, name_issuer, name_queue
    from erasable.operations.scan import scan
    from erasable.operations.storage import DiskStorage, MemoryStorage, Storage
    from erasable.operations.tune import Tuned
    from erasable.operations.upgrade import Upgraded, UpgradePlan, plan_upgrade, upgrade
    from erasable.operations.verify import Claim, Verification, verify
    from erasable.operations.work import Work, available_cores
    from erasable.progress import Reporter, Silent
else:
    load_on_first_use(
        __name__,
        {
            "erasable.operations.attack": "Probe attack attack_erased",
            "erasable.operations.compare": "ModelComparison",
            "erasable.operations.do_not_learn": "Outside",
            "erasable.operations.forget": "Extent Forgotten forget large_extent learned_elsewhere withdraw_submitted",
            "erasable.operations.inspect": (
                "GroupFacts Holding LoadedVersion certificate_file certificates_of erasure_records evaluate "
                "groups show status"
            ),
            "erasable.operations.learn": "Learned LearnedMore learn learn_more",
            "erasable.operations.live": "Live Recommended",
            "erasable.operations.people": "near_in",
            "erasable.operations.planning": "plan plan_random",
            "erasable.operations.prepare": "Inputs",
            "erasable.operations.recommend": "Recommendation recommend recommend_for_history",
            "erasable.operations.recording": "begin_new_queue issuing_as name_issuer name_queue",
            "erasable.operations.scan": "scan",
            "erasable.operations.storage": "DiskStorage MemoryStorage Storage",
            "erasable.operations.tune": "Tuned",
            "erasable.operations.upgrade": "Upgraded UpgradePlan plan_upgrade upgrade",
            "erasable.operations.verify": "Claim Verification verify",
            "erasable.operations.work": "Work available_cores",
            "erasable.progress": "Reporter Silent",
        },
    )

__all__ = [
    "Claim",
    "DiskStorage",
    "Extent",
    "Forgotten",
    "GroupFacts",
    "Holding",
    "Inputs",
    "Learned",
    "LearnedMore",
    "Live",
    "LoadedVersion",
    "MemoryStorage",
    "ModelComparison",
    "Outside",
    "Probe",
    "Recommendation",
    "Recommended",
    "Reporter",
    "Silent",
    "Storage",
    "Tuned",
    "UpgradePlan",
    "Upgraded",
    "Verification",
    "Work",
    "attack",
    "attack_erased",
    "available_cores",
    "begin_new_queue",
    "certificate_file",
    "certificates_of",
    "erasure_records",
    "evaluate",
    "forget",
    "groups",
    "issuing_as",
    "large_extent",
    "learn",
    "learn_more",
    "learned_elsewhere",
    "name_issuer",
    "name_queue",
    "near_in",
    "plan",
    "plan_random",
    "plan_upgrade",
    "recommend",
    "recommend_for_history",
    "scan",
    "show",
    "status",
    "upgrade",
    "verify",
    "withdraw_submitted",
]
