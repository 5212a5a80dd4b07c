"""What the owner is told without having asked: tools and hosts in trouble, requests that wait, budgets.

`Notifier` looks, tells each thing once, and passes every change on to the watchers of the activity
stream. The rows themselves are `store.notifications`.
"""

from services.orchestrator.notifications.notifier import Notifier
from services.orchestrator.notifications.views import notification_view

__all__ = ["Notifier", "notification_view"]
