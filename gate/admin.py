"""The admin: to look and to revoke, never to change evidence. What is sealed is not shown here either."""

from django.contrib import admin

from gate.models import AuditEntry, Corpus, Lever, Plan, Token, Verdict
from listening.models import Invitation
from synth.models import Worker


class ReadOnly(admin.ModelAdmin):
    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


@admin.register(Lever)
class LeverAdmin(ReadOnly):
    list_display = ("slug", "state", "parent", "candidate", "created_at")
    fields = ("slug", "title", "state", "problem", "parent", "candidate", "campaign", "created_at")


@admin.register(Plan)
class PlanAdmin(ReadOnly):
    list_display = ("lever", "number", "digest", "locked_at")


@admin.register(Verdict)
class VerdictAdmin(ReadOnly):
    list_display = ("lever", "verdict", "at")


@admin.register(Corpus)
class CorpusAdmin(ReadOnly):
    list_display = ("name", "language", "licence")
    exclude = ("sentences",)


@admin.register(AuditEntry)
class AuditAdmin(ReadOnly):
    list_display = ("at", "lever", "actor", "text")


@admin.register(Worker)
class WorkerAdmin(ReadOnly):
    list_display = ("name", "device_class", "last_seen")


@admin.register(Token)
class TokenAdmin(admin.ModelAdmin):
    list_display = ("name", "kind", "created_at", "revoked_at")
    fields = ("revoked_at",)

    def has_add_permission(self, request):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


@admin.register(Invitation)
class InvitationAdmin(admin.ModelAdmin):
    list_display = ("panel", "note", "max_raters", "expires_at", "revoked_at")
    fields = ("note", "max_raters", "expires_at", "revoked_at")

    def has_add_permission(self, request):
        return False
