"""Plans of either algebra."""

from __future__ import annotations

from kleene.plan.detections import DetectionPlan
from kleene.plan.physical import Plan
from kleene.plan.streams import StreamPlan

AnyPlan = Plan | StreamPlan | DetectionPlan
