"""The use cases, once, for library, command and service."""

from erasable.operations.answers import RECOMMENDATIONS
from erasable.operations.audit import Probe, audit, audit_erased
from erasable.operations.certificates import certificate_file, certificates_of, erasure_records
from erasable.operations.forget import Extent, Forgotten, forget, large_extent, learned_elsewhere, withdraw_submitted
from erasable.operations.home import DiskHome, Home, MemoryHome
from erasable.operations.inspect import GroupFacts, Holding, InMemory, evaluate, groups, show, status
from erasable.operations.issuer import issuing_as, name_issuer
from erasable.operations.learn import Learned, learn
from erasable.operations.live import Live, Recommended
from erasable.operations.more import LearnedMore, learn_more
from erasable.operations.near import near_in
from erasable.operations.outside import Outside
from erasable.operations.planning import plan, plan_random
from erasable.operations.prepare import Inputs
from erasable.operations.public_data import Fetched, get_public_set
from erasable.operations.queue_place import begin_new_queue, name_queue
from erasable.operations.recommend import Recommendation, recommend, recommend_for_history
from erasable.operations.recommender import Recommender
from erasable.operations.reporting import Reporter, Silent
from erasable.operations.scan import scan
from erasable.operations.upgrade import Upgraded, UpgradePlan, plan_upgrade, upgrade
from erasable.operations.verify import Claim, Verification, verify
from erasable.operations.work import Work, available_cores

__all__ = [
    "RECOMMENDATIONS",
    "Claim",
    "DiskHome",
    "Extent",
    "Fetched",
    "Forgotten",
    "GroupFacts",
    "Holding",
    "Home",
    "InMemory",
    "Inputs",
    "Learned",
    "LearnedMore",
    "Live",
    "MemoryHome",
    "Outside",
    "Probe",
    "Recommendation",
    "Recommended",
    "Recommender",
    "Reporter",
    "Silent",
    "UpgradePlan",
    "Upgraded",
    "Verification",
    "Work",
    "audit",
    "audit_erased",
    "available_cores",
    "begin_new_queue",
    "certificate_file",
    "certificates_of",
    "erasure_records",
    "evaluate",
    "forget",
    "get_public_set",
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
